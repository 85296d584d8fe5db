"""Settings of a kernel that has another one inside."""


class OuterKernel:
    """What the runner needs of settings, taken from those of the kernel `inner` that they hold.

    A subclass is a frozen dataclass with the attribute `inner`, and says itself where it differs.
    """

    @property
    def adapts(self):
        """Whether warm-up tunes the step size."""
        return self.inner.adapts

    @property
    def preconditions(self):
        """Whether warm-up tunes a preconditioner."""
        return self.inner.preconditions

    @property
    def preconditioner(self):
        """That of the inner kernel."""
        return self.inner.preconditioner

    @property
    def step_size(self):
        """That of the inner kernel."""
        return self.inner.step_size

    @property
    def bias_note(self):
        """What every report must say of biased draws, or None."""
        return self.inner.bias_note

    @property
    def couples_chains(self):
        """Whether chains learn from each other."""
        return self.inner.couples_chains

    @property
    def temperatures(self):
        """Powers of the likelihood, one for each walker that makes up a chain."""
        return self.inner.temperatures

    @property
    def gradients_per_transition(self):
        """Those of the inner kernel."""
        return self.inner.gradients_per_transition

    def potential(self, spec):
        """The density in the coordinates that the inner kernel samples."""
        return self.inner.potential(spec)

    def gains_from_xla(self, spec, num_rows):
        """Whether XLA makes faster programs of this kernel than TensorFlow itself."""
        return self.inner.gains_from_xla(spec, num_rows)

    def check_model(self, spec, row_noise):
        """Refuses a model that the inner kernel cannot handle."""
        self.inner.check_model(spec, row_noise)

    def check_chains(self, num_chains):
        """Refuses fewer chains than the inner kernel needs."""
        self.inner.check_chains(num_chains)

    def check_start(self, results, chains):
        """Refuses starts from which the inner kernel cannot move."""
        self.inner.check_start(results, chains)

    def work(self, spec):
        """About how many gradients a transition costs."""
        return self.inner.work(spec)

    def accept_target(self, spec):
        """The acceptance rate that adaptation aims at."""
        return self.inner.accept_target(spec)

    def accept_reason(self, spec):
        """Why `accept_target` is what it is."""
        return self.inner.accept_reason(spec)

    def pooled_acceptance(self, acceptance):
        """What the step sizes [C] learn from, of the acceptance rates [C]."""
        return self.inner.pooled_acceptance(acceptance)

    def first_step_size(self, leapfrog_step, num_parameters):
        """The step sizes [C] to start from where one leapfrog step of these sizes is accepted."""
        return self.inner.first_step_size(leapfrog_step, num_parameters)

    def build(self, target_log_prob_fn, step_size):
        """The inner kernel."""
        return self.inner.build(target_log_prob_fn, step_size)

    def prepare(self, results, step_size, key, adapting):
        """The inner kernel's results for the next transition."""
        return self.inner.prepare(results, step_size, key, adapting)

    def target_log_prob(self, results):
        """Log density of the current state [C]."""
        return self.inner.target_log_prob(results)

    def statistics(self, results):
        """Statistics of the last transition."""
        return self.inner.statistics(results)
