"""Graph networks over a dense adjacency: convolution and attention."""

import math
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter
import torch
import torch.nn as nn
import torch.nn.functional as F

from _shared import data, fill, fit


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        output = torch.mm(adj, torch.mm(input, self.weight))
        return output if self.bias is None else output + self.bias

    def __repr__(self):
        return self.__class__.__name__ + " (" + str(self.in_features) + " -> " + str(self.out_features) + ")"


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass):
        super().__init__()
        self.gc1, self.gc2 = GraphConvolution(nfeat, nhid), GraphConvolution(nhid, nclass)

    def forward(self, x, adj):
        return F.log_softmax(self.gc2(F.relu(self.gc1(x, adj)), adj), dim=1)


class GraphAttention(nn.Module):
    def __init__(self, size, out, alpha=0.2):
        super().__init__()
        self.W = Parameter(torch.empty(size=(size, out)))
        nn.init.xavier_uniform_(self.W.data, gain=1.414)
        self.a = Parameter(torch.empty(size=(2 * out, 1)))
        self.out, self.leaky = out, nn.LeakyReLU(alpha)

    def forward(self, h, adj):
        wh = torch.mm(h, self.W)
        e = self.leaky(wh @ self.a[: self.out, :] + (wh @ self.a[self.out :, :]).T)
        attention = torch.where(adj > 0, e, -9e15 * torch.ones_like(e))
        return F.elu(torch.matmul(F.softmax(attention, dim=1), wh))


class GAT(nn.Module):
    def __init__(self, size, hidden, classes, heads):
        super().__init__()
        self.attentions = [GraphAttention(size, hidden) for _ in range(heads)]
        for i, attention in enumerate(self.attentions):
            self.add_module("attention_{}".format(i), attention)
        self.out_att = GraphAttention(hidden * heads, classes)

    def forward(self, x, adj):
        x = torch.cat([att(x, adj) for att in self.attentions], dim=1)
        return F.log_softmax(F.elu(self.out_att(x, adj)), dim=1)


x, adj = data(6, 5), (data(6, 6) > 0.2).double() + torch.eye(6).double()
adj = adj / adj.sum(1, keepdim=True)
labels, train = torch.LongTensor([0, 1, 2, 0, 1, 2]), torch.ByteTensor([1, 1, 0, 1, 0, 1]).bool()
gcn, gat = fill(GCN(5, 4, 3)), fill(GAT(5, 3, 3, 2))
print(gcn.gc1)
fit(gcn, lambda: F.nll_loss(gcn(x, adj)[train], labels[train]))
fit(gat, lambda: F.nll_loss(gat(x, adj)[train], labels[train]))
print([name for name, _ in gat.named_parameters()])
