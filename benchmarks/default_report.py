def report(rows):
    return f"{len(rows)} rows"
