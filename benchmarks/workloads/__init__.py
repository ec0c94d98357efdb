"""The workloads, one folder each: `problem.py` makes the weights and batches, the other files are the peers."""

from __future__ import annotations

from benchmarks.workload import Workload
from benchmarks.workloads import (
    w1_names_mlp,
    w2_bf16,
    w2_mnist_mlp,
    w3_char_gpt,
    w4_scalar_moons,
    w5_small_cnn,
    w6_resnet18,
    w7_mobilenetv2,
    w8_conv_vae,
    w9_densenet40,
    w10_lstm,
    w11_unet,
    w12_pinn,
    w13_encoder,
)

WORKLOADS: dict[str, Workload] = {
    module.WORKLOAD.key: module.WORKLOAD
    for module in (
        w1_names_mlp,
        w2_mnist_mlp,
        w2_bf16,
        w3_char_gpt,
        w4_scalar_moons,
        w5_small_cnn,
        w6_resnet18,
        w7_mobilenetv2,
        w8_conv_vae,
        w9_densenet40,
        w10_lstm,
        w11_unet,
        w12_pinn,
        w13_encoder,
    )
}
