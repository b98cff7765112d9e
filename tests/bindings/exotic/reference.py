"""Never called."""


def mixed(x, index, weights, state, scale, offset, flip):
    return state, x, index
