"""Log-probabilities and entropies in pieces: the same figures and gradients, at a fraction of the memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="the extra codea1-env[rllib] is not installed")

from codea1_agents.train.grpo.token_figures import token_figures  # noqa: E402

N_ROWS, N_TOKENS, WIDTH, VOCABULARY = 3, 11, 8, 37
MASK = torch.arange(N_TOKENS) < torch.tensor([[11], [4], [1]])


def figures(logits_at_once: int, *, entropy_gradient: bool = True) -> list[torch.Tensor]:
    """Return log-probabilities, entropies, and the gradients of a sum of them into states and output matrix."""
    draw = torch.Generator().manual_seed(0)
    states = torch.randn(N_ROWS, N_TOKENS, WIDTH, generator=draw, requires_grad=True)
    weight = torch.randn(VOCABULARY, WIDTH, generator=draw, requires_grad=True)
    tokens = torch.randint(VOCABULARY, (N_ROWS, N_TOKENS), generator=draw)
    found = token_figures(
        states,
        lambda part: part @ weight.T,
        tokens,
        MASK,
        logits_at_once=logits_at_once,
        entropy_gradient=entropy_gradient,
    )
    (found.log_probs.sum() + found.entropy.square().sum()).backward()
    return [found.log_probs.detach(), found.entropy.detach(), states.grad, weight.grad]


@pytest.mark.parametrize("entropy_gradient", [False, True])
@pytest.mark.parametrize("logits_at_once", [1, 3, 15, 16, 1000])
def test_pieces_change_neither_figures_nor_gradients(logits_at_once: int, entropy_gradient: bool) -> None:
    whole, parts = (figures(size, entropy_gradient=entropy_gradient) for size in (0, logits_at_once))
    for one, other in zip(whole, parts, strict=True):
        assert torch.allclose(one, other, atol=1e-5)  # sums of squares up to 10, in float32


def test_they_are_those_of_plain_torch_and_zero_on_padding() -> None:
    draw = torch.Generator().manual_seed(1)
    logits = torch.randn(N_ROWS, N_TOKENS, VOCABULARY, generator=draw)
    tokens = torch.randint(VOCABULARY, (N_ROWS, N_TOKENS), generator=draw)
    found = token_figures(logits, torch.nn.Identity(), tokens, MASK, logits_at_once=4)
    distribution = torch.distributions.Categorical(logits=logits)
    assert torch.allclose(found.log_probs, distribution.log_prob(tokens) * MASK, atol=1e-6)
    assert torch.allclose(found.entropy, distribution.entropy() * MASK, atol=1e-6)


@pytest.mark.parametrize("logits_at_once", [16, 64])
def test_parts_in_half_precision_lose_no_bits_of_the_weights_gradient(logits_at_once: int) -> None:
    """Autocast would share one cast of the weights among all parts, and add up their gradients in its eight bits."""
    draw = torch.Generator().manual_seed(2)
    head = torch.nn.Linear(16, VOCABULARY, bias=False)
    states = torch.randn(1, 4096, 16, generator=draw)
    tokens = torch.randint(VOCABULARY, (1, 4096), generator=draw)

    def gradient(size: int, *, halved: bool) -> torch.Tensor:
        head.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=halved):
            found = token_figures(states, head, tokens, torch.ones_like(tokens) > 0, logits_at_once=size)
        found.log_probs.sum().backward()
        return head.weight.grad.clone()

    exact = gradient(0, halved=False)
    whole, parts = (float((gradient(size, halved=True) - exact).norm()) for size in (0, logits_at_once))
    assert parts < 1.5 * whole


PEAK = """
import resource, torch
from codea1_agents.train.grpo.token_figures import token_figures
torch.set_num_threads(1)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
n_tokens, vocabulary, width = 512, 151_936, 16
states = torch.randn(1, n_tokens, width, requires_grad=True)
weight = torch.randn(vocabulary, width, requires_grad=True)
tokens, mask = torch.zeros(1, n_tokens, dtype=torch.int64), torch.ones(1, n_tokens, dtype=torch.bool)
small = token_figures(states[:, :1], lambda part: part @ weight.T, tokens[:, :1], mask[:, :1])
small.log_probs.sum().backward()
before = peak()
found = token_figures(states, lambda part: part @ weight.T, tokens, mask, logits_at_once=64, entropy_gradient=True)
(found.log_probs.sum() + found.entropy.sum()).backward()
print(peak() - before)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the resident memory in KiB")
def test_a_long_response_at_a_large_vocabulary_takes_little_memory() -> None:
    """All its logits at once would take 297 MiB, and 1.8 GB with their gradients."""
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 450
