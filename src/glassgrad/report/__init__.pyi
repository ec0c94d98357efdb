# Written by tools/stubs.py from the lists of public names.
from glassgrad.doctor.debugging import check_up_lines as check_up_lines
from glassgrad.doctor.debugging import debug_training as debug_training
from glassgrad.report.activations import plot_activations as plot_activations
from glassgrad.report.flow import plot_gradient_flow as plot_gradient_flow
from glassgrad.report.flow import plot_total_norm as plot_total_norm
from glassgrad.report.flow import visualize_gradient_flow as visualize_gradient_flow
from glassgrad.report.histograms import plot_gradient_histograms as plot_gradient_histograms
from glassgrad.report.statistics import plot_statistics as plot_statistics
