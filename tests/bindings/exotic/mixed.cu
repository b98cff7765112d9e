// Never compiled: loaders are compared by what they ask a driver for.
