def figure(rows, plan, path):
    pass
