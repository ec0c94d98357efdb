"""`grad_fn=<...>` under the name torch: PyTorch's name of the op that made a tensor, wherever our graph knows it."""

from __future__ import annotations

import builtins
import linecache
import warnings
from types import FunctionType
from typing import Any

import pytest

import glassgrad as gg
from glassgrad import compat
from glassgrad.compat.grad_names import CALLS, PRIMITIVES, backward_name
from glassgrad.ops.core import PRIMITIVES as KNOWN

torch = pytest.importorskip("torch", reason="PyTorch's names are what ours are held against")

# x (3, 4), w (4, 3), v (4,), b (2, 3, 4) and the number s have gradients.
CALLED = [
    line.strip()
    for line in """
    x+1
    x+x
    1-x
    x-x
    x*2
    x*x
    x/2
    x/x
    -x
    x**2
    x**x
    2**x
    x%2
    x//1
    x@w
    x@v
    v@v
    b@w
    v@w
    b@b.mT
    x.T
    x.t()
    x.mT
    b.permute(2,0,1)
    b.transpose(0,1)
    x.sum()
    x.sum(0)
    x.mean()
    x.mean(0)
    x.max()
    x.max(0)[0]
    x.min()
    x.amax(0)
    x.amax()
    x.prod()
    x.prod(0)
    x.std()
    x.var()
    x.var(0)
    x.std(0)
    x.norm()
    torch.linalg.norm(x)
    x.exp()
    x.log()
    x.sqrt()
    x.tanh()
    x.sigmoid()
    x.relu()
    F.relu(x)
    F.gelu(x)
    F.silu(x)
    F.elu(x)
    F.leaky_relu(x)
    F.softplus(x)
    F.softmax(x,-1)
    F.log_softmax(x,-1)
    F.hardtanh(x)
    F.selu(x)
    F.mish(x)
    F.hardswish(x)
    F.logsigmoid(x)
    x.abs()
    x.clamp(0)
    x.clamp(0,1)
    x.clamp_min(0)
    x.sin()
    x.cos()
    x.view(4,3)
    x.reshape(4,3)
    x.flatten()
    x.T.reshape(-1)
    x.unsqueeze(0)
    x.unsqueeze(0).squeeze(0)
    x.unsqueeze(0).squeeze()
    x[0]
    x[0,1]
    x[:2]
    x[:,1]
    x[:]
    x[...,0]
    x[None]
    x[torch.tensor([0,1])]
    x[x>0]
    x[::2]
    torch.cat([x,x])
    torch.stack([x,x])
    x.chunk(2)[0]
    x.split(1)[0]
    x.unbind()[0]
    x.expand(2,3,4)
    x.repeat(2,1)
    torch.where(x>0,x,x*2)
    x.masked_fill(x>0,0.)
    x.gather(0,torch.zeros(1,4,dtype=torch.long))
    x.scatter(0,torch.zeros(1,4,dtype=torch.long),1.)
    x.index_select(0,torch.tensor([0]))
    x.clone()
    x.contiguous().T.contiguous()
    x.double()
    x.float()
    x.to(torch.float64)
    x.cumsum(0)
    x.cumprod(0)
    x.logsumexp(0)
    x.logsumexp(1)
    x.topk(2)[0]
    x.sort()[0]
    x.tril()
    x.triu()
    x.diag()
    torch.diagonal(x)
    torch.trace(x)
    x.roll(1)
    x.flip(0)
    torch.einsum('ij,jk->ik',x,w)
    torch.outer(v,v)
    torch.dot(v,v)
    torch.mm(x,w)
    torch.mv(x,v)
    torch.bmm(b,b.mT)
    torch.addmm(torch.ones(3,3),x,w)
    torch.maximum(x,x+1)
    torch.minimum(x,x+1)
    torch.atan2(x,x)
    torch.hypot(x,x)
    torch.lerp(x,x+1,.5)
    torch.addcmul(x,x,x)
    torch.addcdiv(x,x,x)
    F.linear(x,torch.randn(2,4))
    F.linear(x,torch.randn(2,4),torch.randn(2))
    F.linear(b,torch.randn(2,4),torch.randn(2))
    F.linear(b,torch.randn(2,4))
    F.linear(v,torch.randn(2,4),torch.randn(2))
    F.conv2d(torch.randn(1,1,4,4),torch.randn(1,1,2,2,requires_grad=True))
    F.conv1d(torch.randn(1,1,4),torch.randn(1,1,2,requires_grad=True))
    F.conv_transpose2d(torch.randn(1,1,4,4),torch.randn(1,1,2,2,requires_grad=True))
    F.max_pool2d(b,2)
    F.max_pool2d(b[None],2)
    F.avg_pool2d(b,2)
    F.adaptive_avg_pool2d(b,1)
    F.adaptive_avg_pool2d(b,2)
    F.max_pool1d(b,2)
    F.avg_pool1d(b,2)
    F.embedding(torch.tensor([0]),x)
    F.dropout(x,.5)
    F.layer_norm(x,(4,))
    F.batch_norm(x,None,None,training=True)
    F.group_norm(b,3)
    F.mse_loss(x,torch.zeros(3,4))
    F.l1_loss(x,torch.zeros(3,4))
    F.smooth_l1_loss(x,torch.zeros(3,4))
    F.huber_loss(x,torch.zeros(3,4))
    F.cross_entropy(x,torch.tensor([0,1,2]))
    F.nll_loss(x,torch.tensor([0,1,2]))
    F.binary_cross_entropy(x.sigmoid(),torch.zeros(3,4))
    F.binary_cross_entropy_with_logits(x,torch.zeros(3,4))
    F.kl_div(x,x.softmax(-1))
    F.pad(x,(1,1))
    F.interpolate(b[None],scale_factor=2)
    F.normalize(x)
    F.cosine_similarity(x,x)
    F.one_hot(torch.tensor([0]),3)
    F.scaled_dot_product_attention(b,b,b)
    F.unfold(b[None],1)
    F.pixel_shuffle(torch.randn(1,4,2,2,requires_grad=True),2)
    torch.linalg.inv(x@w)
    torch.linalg.det(x@w)
    torch.linalg.solve(x@w,x)
    torch.linalg.svd(x)[1]
    torch.linalg.qr(x)[0]
    torch.linalg.cholesky(x@x.T+torch.eye(3))
    x.round()
    x.floor()
    x.sign()
    x.frac()
    x.reciprocal()
    x.rsqrt()
    x.square()
    x.log1p()
    x.expm1()
    x.log2()
    x.erf()
    x.tan()
    x.asin()
    x.sinh()
    x.lgamma()
    x.squeeze()
    x.unfold(1,2,1)
    x.as_strided((2,),(1,))
    x.narrow(0,0,1)
    x.select(0,0)
    x.movedim(0,1)
    x.swapaxes(0,1)
    x.view(-1)
    x.view_as(x)
    torch.hstack([x,x])
    torch.vstack([x,x])
    torch.meshgrid(v,v)[0]
    x.median()
    x.median(0)[0]
    x.quantile(.5)
    x.nansum()
    x.cummax(0)[0]
    x.renorm(2,0,1.)
    torch.cdist(x,x)
    torch.cross(b[:,:,:3],b[:,:,:3])
    torch.kron(x,x)
    x.real
    torch.complex(x,x)
    torch.view_as_real(torch.complex(x,x))
    x.index_add(0,torch.tensor([0]),torch.ones(1,4))
    x.requires_grad_()+0
    s*x
    s*2
    s*s
    s+1
    nn.LSTM(4,3)(b)[0]
    nn.GRU(4,3)(b)[0]
    nn.RNN(4,3)(b)[0]
    x.clone().add_(1)
    x.clone().mul_(2)
    x.clone().zero_()
    x.clone().fill_(1.)
    x.clone().relu_()
    (lambda y:(y.__setitem__(0,1.),y)[1])(x.clone())
    (lambda y:(y.__setitem__(0,x[1]),y)[1])(x*1)
    (lambda y:(y[0].mul_(2),y)[1])(x*1)
    x.aminmax()[0]
    x.argmax()
    torch.nn.functional.softmin(x)
    x.softmax(0)
    x.log_softmax(0)
    F.glu(x)
    F.prelu(x,torch.ones(1))
    F.hardsigmoid(x)
    F.softsign(x)
    F.tanhshrink(x)
    F.relu6(x)
    F.celu(x)
    F.threshold(x,0,0)
    F.rrelu(x)
    torch.logaddexp(x,x)
    x.fmod(2)
    x.remainder(2)
    torch.tensordot(x,w,1)
    torch.baddbmm(b@b.mT,b,b.mT)
    torch.block_diag(x,x)
    torch.fft.fft(x)
    torch.fft.rfft(x)
    x.nan_to_num()
    x.masked_select(x>0)
    torch.var_mean(x)[0]
    F.gaussian_nll_loss(x,x,x**2+1)
    F.poisson_nll_loss(x,x)
    F.hinge_embedding_loss(x,x.sign())
    F.triplet_margin_loss(x,x,x)
    F.cosine_embedding_loss(x,x,torch.ones(3))
    F.margin_ranking_loss(v,v,v.sign())
    torch.linalg.vector_norm(x)
    torch.linalg.matrix_norm(x)
    x.dist(x)
    x.exp2()
    x.sinc()
    x.logit()
    x.erfinv()
    x.deg2rad()
    """.strip().splitlines()
]
# Our name where it differs from PyTorch's, and why.
DIFFERENT = {
    "x.T.reshape(-1)": "ViewBackward0: whether a reshape copies is not told apart",
    "x.unsqueeze(0).squeeze(0)": "SqueezeBackward0: a squeeze of one dimension and of all are one op",
    "x.scatter(0,torch.zeros(1,4,dtype=torch.long),1.)": "ScatterBackward0: a number is written as a tensor is",
    "x.diag()": "CloneBackward0: the copy of a view, which PyTorch calls DiagonalBackward0_copy",
    "torch.einsum('ij,jk->ik',x,w)": "MmBackward0: the product itself, without a view of it",
    "F.adaptive_avg_pool2d(b,1)": "AdaptiveAvgPool2DBackward0: not a mean",
    "F.max_pool1d(b,2)": "ViewBackward0: a pool of two dimensions and a reshape",
    "F.avg_pool1d(b,2)": "ViewBackward0: as above",
    "F.cosine_similarity(x,x)": "DivBackward0: the quotient is last here, the sum in PyTorch",
    "F.scaled_dot_product_attention(b,b,b)": "ScaledDotProductAttentionBackward0: one op",
    "x.quantile(.5)": "ViewBackward0: no squeeze",
}


# Our name after a backward pass, where it differs from the one before it: nodes have no parents then.
AFTERWARDS = {
    "x**x": "PowBackward0",
    "2**x": "PowBackward0",
    "v@w": "MvBackward0",
    "F.linear(x,torch.randn(2,4))": "AddmmBackward0",
    "F.linear(b,torch.randn(2,4))": "ViewBackward0",
    **dict.fromkeys(("torch.linalg.svd(x)[1]", "torch.linalg.qr(x)[0]"), "PickBackward0"),
    **dict.fromkeys(("nn.LSTM(4,3)(b)[0]", "nn.GRU(4,3)(b)[0]", "nn.RNN(4,3)(b)[0]"), "PickBackward0"),
}


def name_in(library: Any, call: str, *, walked: bool = False) -> str | None:
    """What made the result of a call, as a tensor's text says it; also after a backward pass from it."""
    F, nn = library.nn.functional, library.nn
    library.manual_seed(0)
    shapes = {"x": (3, 4), "w": (4, 3), "v": (4,), "b": (2, 3, 4), "s": ()}
    names = {name: library.randn(shape, requires_grad=True) for name, shape in shapes.items()}
    file = f"<{call}>"
    linecache.cache[file] = (len(call), None, [call + "\n"], file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = FunctionType(
            compile(call, file, "eval"), {"torch": library, "F": F, "nn": nn, "__builtins__": builtins, **names}
        )()
        if walked and result.requires_grad:
            result.backward(library.ones_like(result))
    if result.grad_fn is None:
        return None
    if library is gg:
        return backward_name(result.grad_fn)
    return str(result.grad_fn.name().rpartition("::")[2])


@pytest.mark.parametrize("call", CALLED)
def test_name(call: str) -> None:
    expected, found = name_in(torch, call), name_in(gg, call)
    if call in DIFFERENT:
        assert found == DIFFERENT[call].partition(":")[0]
        assert found != expected, "it has PyTorch's name now; take it out of DIFFERENT"
    else:
        assert found == expected


@pytest.mark.parametrize("call", CALLED)
def test_name_after_a_backward_pass(call: str) -> None:
    before, after = name_in(gg, call), name_in(gg, call, walked=True)
    assert after == AFTERWARDS.get(call, before)
    assert call not in AFTERWARDS or after != before, "it keeps its name now; take it out of AFTERWARDS"


def test_the_tables_name_primitives_that_there_are() -> None:
    assert not {*PRIMITIVES, *(key.rpartition(".")[2] for key in CALLS)} - {*KNOWN}
    assert set(DIFFERENT) <= set(CALLED)


def test_text_after_a_backward_pass_and_in_a_program_without_source() -> None:
    x = gg.ones(3, requires_grad=True)
    with compat.as_torch():
        loss = (x * x).mean()
        loss.backward()
        assert repr(loss) == "tensor(1., grad_fn=<MeanBackward0>)"
        assert repr(loss.grad_fn).startswith("<MeanBackward0 object at 0x")
        unseen = FunctionType(compile("x.view(3, 1).sum(1)", "<nowhere>", "eval"), {"x": x})()
        assert repr(unseen) == "tensor([1., 1., 1.], grad_fn=<SumBackward1>)"
    assert "test_grad_names.py" in repr(loss)


def test_functions_of_ones_own() -> None:
    class Twice(gg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    y = Twice.apply(gg.ones(1, requires_grad=True))
    assert backward_name(y.grad_fn) == "TwiceBackward"
