#!/usr/bin/env python3
"""Builds the dashboards beside this file with Grafana's own library of their types, grafana-foundation-sdk (PyPI), which
nothing else needs.

    python3 -m venv VENV && VENV/bin/pip install --no-deps 'grafana-foundation-sdk==1769699998!10.1.0'
    VENV/bin/python deploy/grafana/build_dashboards.py            writes service.json, gpu.json and steps.json
    VENV/bin/python deploy/grafana/build_dashboards.py --check    compares them, and exits 1 if one is not current
"""
import json
import pathlib
import sys

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model

HERE = pathlib.Path(__file__).parent
SOURCE = model.DataSourceRef(type_val='prometheus', uid='${datasource}')
# Grafana puts the variables in. Outside of Kubernetes there is no namespace and no pod; '.*' also fits a label that is
# not there.
SERVER = 'namespace=~"$namespace",pod=~"$pod"'
MODEL = SERVER + ',model=~"$model"'
GPU = SERVER + ',UUID=~"$gpu"'


def variable(name, label, metric, of):
    return (dashboard.QueryVariable(name).label(label).datasource(SOURCE)
            .query(f'label_values({metric}, {of})')
            .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(model.VariableSort.ALPHABETICAL_ASC)
            .multi(True).include_all(True).all_value('.*')
            .current(model.VariableOption(selected=True, text='All', value='$__all')))


def query(expression, legend):
    return prometheus.Dataquery().expr(expression).legend_format(legend)


def prepared(panel, title, unit, about, queries, width, height):
    panel = panel.title(title).description(about).datasource(SOURCE).unit(unit).span(width).height(height)
    for letter, (expression, legend) in zip('ABCDEFGH', queries):
        panel = panel.with_target(query(expression, legend).ref_id(letter))
    return panel


def graph(title, unit, about, *queries, stacked=False, width=12, most=None):
    panel = prepared(timeseries.Panel(), title, unit, about, queries, width, 8)
    panel = panel.fill_opacity(30 if stacked else 5).min(0).span_nulls(60_000.0)
    panel = panel.show_points(common_model.VisibilityMode.AUTO)
    panel = panel.legend(common.VizLegendOptions().show_legend(True).placement(common_model.LegendPlacement.BOTTOM)
                         .display_mode(common_model.LegendDisplayMode.LIST))
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL))
    return panel if most is None else panel.max(most)


def number(title, unit, about, expression, legend='', width=4):
    return (prepared(stat.Panel(), title, unit, about, [(expression, legend)], width, 4)
            .graph_mode(common_model.BigValueGraphMode.AREA)
            .reduce_options(common.ReduceDataOptions().calcs(['lastNotNull'])))


def running(metric, *selectors):
    """Each device group runs a job of its own."""
    return f'max by (pod, group) ({metric}{{{",".join((MODEL, *selectors))}}})', '{{pod}} group {{group}}'


def rows(title, uid, about, content, gpu=False, models=True):
    board = (dashboard.Dashboard(title).uid(uid).description(about).tags(['wanserve']).editable()
             .timezone('browser').refresh('30s').time('now-3h', 'now')
             .tooltip(model.DashboardCursorSync.CROSSHAIR)
             .with_variable(dashboard.DatasourceVariable('datasource').label('Data source').type('prometheus'))
             .with_variable(variable('namespace', 'Namespace', 'wan_build_info', 'namespace'))
             .with_variable(variable('pod', 'Pod', 'wan_build_info{namespace=~"$namespace"}', 'pod')))
    if models:
        board = board.with_variable(variable('model', 'Model', f'wan_model_ready{{{SERVER}}}', 'model'))
    if gpu:
        board = board.with_variable(variable('gpu', 'GPU', f'wan_gpu_memory_total_bytes{{{SERVER}}}', 'UUID'))
    board = board.link(dashboard.DashboardLink('wanserve').type(model.DashboardLinkType.DASHBOARDS)
                       .tags(['wanserve']).as_dropdown(True).keep_time(True).include_vars(True))
    last_id = 0
    for name, panels in content:
        last_id += 1
        board = board.with_row(dashboard.Row(name).id(last_id))
        for panel in panels:
            last_id += 1
            board = board.with_panel(panel.id(last_id))
    return board.build()


def service():
    return rows('wanserve: service', 'wanserve-service', 'Queue, jobs, calls and the data folder.', [
        ('Now', [
            number('Models ready', 'short', 'Models that are resident and warm.', f'sum(wan_model_ready{{{MODEL}}})'),
            number('Jobs that wait', 'short', 'In all queues.', f'sum(wan_queue_length{{{MODEL}}})'),
            number('Oldest job', 's', 'How long the job that was accepted first has waited.',
                   f'max(wan_queue_oldest_seconds{{{MODEL}}})'),
            number('Work that waits', 's', 'Estimated seconds of execution of all jobs that wait.',
                   f'sum(wan_queued_seconds{{{MODEL}}})'),
            number('Running job ends in', 's', 'The median estimate, by device group; nothing while no job runs or nobody knows.',
                   *running('wan_inflight_remaining_seconds', 'estimate="p50"')),
            number('Jobs that failed', 'percentunit', 'Of the jobs that ended by themselves within the last hour.',
                   f'max(wan:job_failure_ratio:1h{{{SERVER}}})'),
        ]),
        ('Queue and jobs', [
            graph('Queue', 'short', 'Jobs that wait, and the capacity.',
                  (f'wan_queue_length{{{MODEL}}}', '{{pod}} {{model}}'),
                  (f'wan_queue_capacity{{{SERVER}}}', '{{pod}} capacity')),
            graph('Age of the oldest job', 's', 'Since its acceptance.',
                  (f'wan_queue_oldest_seconds{{{MODEL}}}', '{{pod}} {{model}}')),
            graph('Jobs that ended', 'short', 'In a minute, by how they ended.',
                  (f'60 * sum by (state) (rate(wan_jobs_total{{{MODEL}}}[$__rate_interval]))', '{{state}}'), stacked=True),
            graph('Time from acceptance to end', 's', 'Median and 95th percentile of completed jobs.',
                  (f'histogram_quantile(0.5, sum by (le, model) (rate(wan_job_seconds_bucket{{{MODEL},state="completed"}}[30m])))',
                   '{{model}} p50'),
                  (f'histogram_quantile(0.95, sum by (le, model) (rate(wan_job_seconds_bucket{{{MODEL},state="completed"}}[30m])))',
                   '{{model}} p95')),
            graph('Rejections', 'short', 'Jobs in a minute that were not accepted, by reason.',
                  (f'60 * sum by (reason) (rate(wan_jobs_rejected_total{{{SERVER}}}[$__rate_interval]))', '{{reason}}'),
                  width=8),
            graph('Failures and cancels', 'short', 'Jobs in a minute, by reason.',
                  (f'60 * sum by (reason) (rate(wan_job_failures_total{{{MODEL}}}[$__rate_interval]))', 'failed: {{reason}}'),
                  (f'60 * sum by (reason) (rate(wan_job_cancels_total{{{MODEL}}}[$__rate_interval]))', '{{reason}}'), width=8),
            graph('Requeues', 'short', 'Running jobs in a minute that went back to the queue, by reason.',
                  (f'60 * sum by (reason) (rate(wan_job_requeues_total{{{MODEL}}}[$__rate_interval]))', '{{reason}}'), width=8),
            graph('Stop of a running job', 's', 'From the request until the device was free: 95th percentile. The goal is 0.5 s.',
                  (f'histogram_quantile(0.95, sum by (le, model) (rate(wan_stop_seconds_bucket{{{MODEL}}}[1h])))', '{{model}}')),
            graph('Time of jobs by its estimate', 'none',
                  'Median of the time that jobs took, divided by the median estimate; 1 is right. And the share of jobs '
                  'within the estimate for nine of ten.',
                  (f'histogram_quantile(0.5, sum by (le) (rate(wan_eta_ratio_bucket{{{MODEL},estimate="p50"}}[6h])))', 'ratio'),
                  (f'sum(rate(wan_eta_ratio_bucket{{{MODEL},estimate="p90",le="1"}}[6h])) '
                   f'/ sum(rate(wan_eta_ratio_count{{{MODEL},estimate="p90"}}[6h]))', 'within p90')),
        ]),
        ('Calls', [
            graph('gRPC calls', 'reqps', 'That ended, by method.',
                  (f'sum by (method) (rate(wan_grpc_calls_total{{{SERVER}}}[$__rate_interval])) > 0', '{{method}}')),
            graph('gRPC errors', 'reqps', 'By code, without OK.',
                  (f'sum by (code) (rate(wan_grpc_calls_total{{{SERVER},code!="OK"}}[$__rate_interval])) > 0', '{{code}}')),
            graph('Latency of gRPC calls', 's', '95th percentile of calls that are no streams.',
                  (f'histogram_quantile(0.95, sum by (le, method) (rate(wan_grpc_call_seconds_bucket{{{SERVER},'
                   'method!~".*/(Generate|Watch.*|DownloadArtifact|ServerReflectionInfo)"}[$__rate_interval])))',
                   '{{method}}')),
            graph('HTTP requests', 'reqps', 'Of the OpenAI video API, by route and code.',
                  (f'sum by (route, code) (rate(wan_http_requests_total{{{SERVER}}}[$__rate_interval])) > 0',
                   '{{route}} {{code}}')),
            graph('Connections, streams, watchers', 'short', 'Open now.',
                  (f'wan_grpc_connections{{{SERVER}}}', '{{pod}} connections'),
                  (f'wan_grpc_streams{{{SERVER}}}', '{{pod}} streams'),
                  (f'wan_grpc_downloads{{{SERVER}}}', '{{pod}} downloads'),
                  (f'wan_job_watchers{{{SERVER}}}', '{{pod}} watchers of jobs')),
            graph('Refused for load', 'short', 'Calls and connections in a minute.',
                  (f'60 * sum by (reason) (rate(wan_grpc_refused_calls_total{{{SERVER}}}[$__rate_interval]))', 'calls: {{reason}}'),
                  (f'60 * sum by (reason) (rate(wan_grpc_refused_connections_total{{{SERVER}}}[$__rate_interval]))',
                   'connections: {{reason}}')),
        ]),
        ('Data folder and process', [
            graph('Disk', 'bytes', 'Free, and what must stay free for accepted jobs and the reserve.',
                  (f'wan_disk_free_bytes{{{SERVER}}}', '{{pod}} free'),
                  (f'wan_disk_reserved_bytes{{{SERVER}}}', '{{pod}} reserved')),
            graph('What the folder holds', 'bytes', 'Files of ended jobs, and the job database.',
                  (f'wan_artifact_bytes{{{SERVER}}}', '{{pod}} artifacts'),
                  (f'wan_database_bytes{{{SERVER}}}', '{{pod}} database')),
            graph('Writes to the job database', 's', '95th percentile of a synced transaction.',
                  (f'histogram_quantile(0.95, sum by (le, operation) (rate(wan_store_write_seconds_bucket{{{SERVER}}}[$__rate_interval])))',
                   '{{operation}}')),
            graph('Processors', 'percent', 'Of all cores: the machine, and the part of the server.',
                  (f'wan_cpu_percent{{{SERVER}}}', '{{pod}} machine'),
                  (f'wan_process_cpu_percent{{{SERVER}}}', '{{pod}} server'), most=100),
            graph('Memory', 'bytes', 'Of the machine or container, and of the server.',
                  (f'wan_system_memory_used_bytes{{{SERVER}}}', '{{pod}} machine'),
                  (f'wan_system_memory_total_bytes{{{SERVER}}}', '{{pod}} there is'),
                  (f'process_resident_memory_bytes{{{SERVER}}} and on (instance) wan_build_info', '{{pod}} server')),
            graph('Descriptors and threads', 'short', 'Of the server.',
                  (f'process_open_fds{{{SERVER}}} and on (instance) wan_build_info', '{{pod}} descriptors'),
                  (f'process_threads{{{SERVER}}} and on (instance) wan_build_info', '{{pod}} threads')),
        ]),
    ])


def gpu():
    def of(metric, what=''):
        return f'{metric}{{{GPU}}}', '{{pod}} {{device}}' + what

    def mean(metric, what=''):
        return f'rate({metric}{{{GPU}}}[$__rate_interval])', '{{pod}} {{device}}' + what

    return rows('wanserve: GPU and memory', 'wanserve-gpu', 'What the cards do, hold and draw.', [
        ('Work', [
            graph('SM activity', 'percentunit', 'Mean between two points, from a counter.',
                  mean('wan_gpu_busy_seconds_total'), most=1),
            graph('Tensor cores and bandwidth', 'percentunit',
                  'Means between two points, from counters; GPM, absent where the card does not have it.',
                  mean('wan_gpu_tensor_seconds_total', ' tensor cores'), mean('wan_gpu_dram_seconds_total', ' bandwidth'), most=1),
            graph('SM activity of the last second', 'percent', 'The second before each scrape: gaps that the mean hides.',
                  of('wan_gpu_sm_activity_percent'), most=100),
            graph('The rest of the last second', 'percent',
                  'Resident warps, tensor cores and bandwidth in the second before each scrape; GPM.',
                  of('wan_gpu_sm_occupancy_percent', ' occupancy'), of('wan_gpu_tensor_activity_percent', ' tensor cores'),
                  of('wan_gpu_dram_bandwidth_percent', ' bandwidth'), most=100),
            graph('Clocks', 'hertz', 'Of multiprocessors and memory.',
                  of('wan_gpu_sm_clock_hertz', ' SM'), of('wan_gpu_memory_clock_hertz', ' memory')),
            graph('Clocks held down', 'percentunit', 'Share of the time, by reason; a card at work often stands at its power cap.',
                  (f'sum by (pod, device, reason) (rate(wan_gpu_throttled_seconds_total{{{GPU}}}[$__rate_interval]))',
                   '{{pod}} {{device}} {{reason}}')),
            graph('Temperature', 'celsius', 'Of the card.', of('wan_gpu_temperature_celsius')),
        ]),
        ('Power', [
            graph('Power', 'watt', 'Drawn by the card.', of('wan_gpu_power_watts')),
            graph('Energy', 'joule', 'In an hour.',
                  (f'increase(wan_gpu_energy_joules_total{{{GPU}}}[1h])', '{{pod}} {{device}}')),
            graph('Energy of a video', 'joule', 'Energy of the last hour, divided by the jobs that completed in it.',
                  (f'sum(increase(wan_gpu_energy_joules_total{{{GPU}}}[1h])) / '
                   f'(sum(increase(wan_jobs_total{{{SERVER},state="completed"}}[1h])) > 0)', 'joule a job')),
            graph('Processes on the card', 'short', 'With contexts to compute; more than one means that others compute there.',
                  of('wan_gpu_processes')),
        ]),
        ('Memory', [
            graph('Memory of the card', 'bytes', 'In use by all processes, what there is, and what the engine holds.',
                  of('wan_gpu_memory_used_bytes', ' used'), of('wan_gpu_memory_total_bytes', ' there is'),
                  of('wan_gpu_allocator_bytes', ' engine')),
            graph('Weights by component', 'bytes', 'Of resident components, by where they are.',
                  (f'wan_component_memory_bytes{{{MODEL}}}', '{{model}} {{component}} on {{device}}'), stacked=True),
            graph('Memory of the server', 'bytes', 'Resident memory of the process, and its peak.',
                  (f'wan_process_memory_bytes{{{SERVER}}}', '{{pod}} now'),
                  (f'wan_process_memory_peak_bytes{{{SERVER}}}', '{{pod}} peak')),
            graph('Memory of the machine', 'bytes', 'Or of the container.',
                  (f'wan_system_memory_used_bytes{{{SERVER}}}', '{{pod}} used'),
                  (f'wan_system_memory_total_bytes{{{SERVER}}}', '{{pod}} there is')),
        ]),
        ('Failures', [
            graph('Device groups that serve', 'short', '1 while the group serves, 0 once a device of it is lost.',
                  (f'wan_device_group_serving{{{SERVER}}}', '{{pod}} group {{group}}: {{device}}'), width=8),
            graph('Out of memory', 'short', 'Jobs in an hour that failed because memory ran out.',
                  (f'increase(wan_job_failures_total{{{MODEL},reason="OUT_OF_MEMORY"}}[1h])', '{{pod}} {{model}}'), width=8),
            graph('Lost devices', 'short', '1 from the loss until the process ends.',
                  (f'wan_device_lost{{{SERVER}}}', '{{pod}} {{cause}}'), width=8),
        ]),
    ], gpu=True)


def steps():
    return rows('wanserve: benchmark and steps', 'wanserve-steps', 'Where the time of jobs goes, and how fast steps are.', [
        ('Running jobs', [
            number('Step', 'none', 'Denoising steps that are done.', *running('wan_inflight_step')),
            number('of', 'none', 'Denoising steps of the job.', *running('wan_inflight_steps')),
            number('Runs for', 's', 'Since the attempt began.', *running('wan_inflight_elapsed_seconds')),
            number('Ends in', 's', 'Median estimate.', *running('wan_inflight_remaining_seconds', 'estimate="p50"')),
            number('Ends at the latest in', 's', 'For nine of ten jobs.',
                   *running('wan_inflight_remaining_seconds', 'estimate="p90"')),
            number('Since the last step', 's', 'Since the attempt began, before the first.',
                   *running('wan_inflight_since_step_seconds')),
            graph('Progress', 'percentunit', 'Steps that are done, by device group.',
                  (f'wan_inflight_step{{{MODEL}}} / (wan_inflight_steps{{{MODEL}}} > 0)', '{{pod}} {{group}} {{model}}'), most=1),
            graph('Time in the stage', 's', 'Since the running job entered it, by device group.',
                  (f'wan_inflight_stage_seconds{{{MODEL}}}', '{{pod}} {{group}} {{model}} {{stage}}')),
        ]),
        ('Steps', [
            graph('Seconds of a step', 's', 'Median and 95th percentile by shape; wrong by a fifth at most.',
                  (f'histogram_quantile(0.5, sum by (le, model, shape) (rate(wan_step_seconds_bucket{{{MODEL}}}[$__rate_interval])))',
                   '{{model}} {{shape}} p50'),
                  (f'histogram_quantile(0.95, sum by (le, model, shape) (rate(wan_step_seconds_bucket{{{MODEL}}}[$__rate_interval])))',
                   '{{model}} {{shape}} p95')),
            graph('By expert', 's', 'Mean seconds of a step.',
                  (f'sum by (model, shape, expert) (rate(wan_step_seconds_sum{{{MODEL}}}[$__rate_interval])) / '
                   f'(sum by (model, shape, expert) (rate(wan_step_seconds_count{{{MODEL}}}[$__rate_interval])) > 0)',
                   '{{model}} {{shape}} {{expert}}')),
            graph('Achieved operations', 'none', 'FLOP a second of denoising steps and of decoding, while they run.',
                  (f'sum by (model, stage) (rate(wan_stage_flops_total{{{MODEL}}}[$__rate_interval])) / '
                   f'(sum by (model, stage) (rate(wan_stage_seconds_sum{{{MODEL}}}[$__rate_interval])) > 0)',
                   '{{model}} {{stage}}')),
            graph('Against its own baseline', 'percentunit',
                  'Seconds for an operation within 15 minutes, divided by those of the day. Above 1.3 the alert WanserveStepsSlow fires.',
                  (f'wan:step_seconds_per_flop:15m{{{MODEL}}} / wan:step_seconds_per_flop:1d{{{MODEL}}}', '{{model}} {{shape}}')),
        ]),
        ('Where the time goes', [
            graph('Share of each stage', 'percentunit', 'Of the time of all attempts, also failed and stopped ones; adds up to 1.',
                  (f'sum by (stage) (rate(wan_execution_seconds_total{{{MODEL}}}[30m])) / '
                   f'scalar(sum(rate(wan_execution_seconds_total{{{MODEL}}}[30m])) > 0)', '{{stage}}'), stacked=True, most=1),
            graph('What attempts came to', 'percentunit', 'Share of the time, by how the attempt ended.',
                  (f'sum by (outcome) (rate(wan_attempt_seconds_total{{{MODEL}}}[30m])) / '
                   f'scalar(sum(rate(wan_attempt_seconds_total{{{MODEL}}}[30m])) > 0)', '{{outcome}}'), stacked=True, most=1),
            graph('Seconds of a stage', 's', 'Mean of stages that ended well, without steps.',
                  (f'sum by (model, stage) (rate(wan_stage_seconds_sum{{{MODEL},stage!~"Step_.*|Total_Execution|Queue_Wait"}}[30m])) / '
                   f'(sum by (model, stage) (rate(wan_stage_seconds_count{{{MODEL},stage!~"Step_.*|Total_Execution|Queue_Wait"}}[30m])) > 0)',
                   '{{model}} {{stage}}')),
            graph('Waiting and running', 's', 'Mean seconds in the queue and in execution.',
                  (f'sum by (model, stage) (rate(wan_stage_seconds_sum{{{MODEL},stage=~"Total_Execution|Queue_Wait"}}[30m])) / '
                   f'(sum by (model, stage) (rate(wan_stage_seconds_count{{{MODEL},stage=~"Total_Execution|Queue_Wait"}}[30m])) > 0)',
                   '{{model}} {{stage}}')),
            graph('Load of models', 's', 'Mean seconds of Model_Initialization.',
                  (f'wan_stage_seconds_sum{{{MODEL},stage="Model_Initialization"}} / '
                   f'wan_stage_seconds_count{{{MODEL},stage="Model_Initialization"}}', '{{pod}} {{model}}')),
            graph('Savepoints', 's', 'Mean seconds of writing one, beside the steps.',
                  (f'sum by (model) (rate(wan_savepoint_seconds_sum{{{MODEL}}}[30m])) / '
                   f'(sum by (model) (rate(wan_savepoint_seconds_count{{{MODEL}}}[30m])) > 0)', '{{model}}')),
        ]),
    ])


def main():
    stale = []
    for name, board in (('service', service()), ('gpu', gpu()), ('steps', steps())):
        text = json.dumps(board, cls=JSONEncoder, indent=1, sort_keys=True) + '\n'
        path = HERE / f'{name}.json'
        if sys.argv[1:] == ['--check']:
            if not path.is_file() or path.read_text() != text:
                stale.append(path.name)
        elif sys.argv[1:]:
            sys.exit(__doc__)
        else:
            path.write_text(text)
    if stale:
        sys.exit(f'{", ".join(stale)} differ from what build_dashboards.py builds: run it and commit them')


if __name__ == '__main__':
    main()
