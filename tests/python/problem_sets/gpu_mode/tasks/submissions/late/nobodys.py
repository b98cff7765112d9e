#!POPCORN leaderboard other


def custom_kernel(data):
    return data
