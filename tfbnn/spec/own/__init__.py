"""What users define in files of their own: functions to sample, priors, likelihoods."""
