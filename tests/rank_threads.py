"""Ranks that are threads of this process, with links that count messages."""

import threading

import numpy as np


class Exchange:
    """Links of ranks that are threads of this process."""

    def __init__(self, n_ranks):
        self.barrier = threading.Barrier(n_ranks)
        self.words = [None] * n_ranks
        self.n_messages = 0

    def link(self, rank):
        return Link(self, rank)


class Link:
    def __init__(self, exchange, rank):
        self.exchange, self.rank, self.is_rank_0 = exchange, rank, rank == 0

    def reduce(self, words, n_sums):
        exchange = self.exchange
        exchange.words[self.rank] = words.copy()
        exchange.barrier.wait()
        assert len({len(one) for one in exchange.words}) == 1
        if self.is_rank_0:
            all_words = np.array(exchange.words)
            words[:n_sums] = all_words[:, :n_sums].sum(axis=0)
            words[n_sums:] = all_words[:, n_sums:].max(axis=0, initial=np.iinfo(np.int64).min)
        else:
            words[:] = 2**62  # other ranks must not read what is left
        exchange.n_messages += self.is_rank_0
        exchange.barrier.wait()

    def share(self, words):
        exchange = self.exchange
        if self.is_rank_0:
            exchange.words[0] = words.copy()
        exchange.barrier.wait()
        assert len(exchange.words[0]) == len(words)
        words[:] = exchange.words[0]
        exchange.barrier.wait()
