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

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as query_model

HERE = pathlib.Path(__file__).parent
SOURCE = model.DataSourceRef(type_val='prometheus', uid='${datasource}')
# Grafana replaces the variables by their values. Every scrape adds `instance`; only Kubernetes adds namespace and pod, and
# '.*' also matches a label that is missing.
SERVER = 'namespace=~"$namespace",pod=~"$pod",instance=~"$instance"'
# The name of the server in a legend; a label that is missing is left blank.
WHO = '{{instance}} {{pod}}'
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
        target = query(expression, legend).ref_id(letter)
        # Only this histogram has exemplars.
        panel = panel.with_target(target.exemplar(True) if 'wan_job_seconds_bucket' in expression else target)
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


def alerts():
    """A line for each alert that fires or waits for its time, with the labels that tell where."""
    listed = query(f'ALERTS{{alertname=~"Wanserve.*",{SERVER}}}', '').instant().format(query_model.PromQueryFormat.TABLE)
    columns = ['alertname', 'severity', 'alertstate', 'instance', 'pod', 'model', 'stage', 'device', 'reason']
    return (table.Panel().title('Alerts that fire or are pending').span(24).height(6).datasource(SOURCE)
            .description('From the rules of deploy/prometheus/alerts.yaml, as Prometheus has them now; the runbook has a '
                         'section for each. WanserveDown has only an instance.')
            .with_target(listed.ref_id('A')).show_header(True).no_value('No alert fires or is pending')
            .with_transformation(model.DataTransformerConfig(id_val='filterFieldsByName', options={
                'include': {'pattern': f'^({"|".join(columns)})$'}}))
            .with_transformation(model.DataTransformerConfig(id_val='organize', options={
                'indexByName': {name: place for place, name in enumerate(columns)}})))


class Restarts(model.AnnotationQuery):
    """A line at each start of a server. The library has no fields for Prometheus' own options."""

    def to_json(self):
        return super().to_json() | {'useValueForTime': True, 'titleFormat': 'wanserve started', 'textFormat': WHO,
                                    'step': '60s'}


class RestartsBuilder(dashboard.AnnotationQuery):
    def build(self):
        # The value is the start time in milliseconds. Other exporters have a metric of this name as well.
        return Restarts(name='Restarts', datasource=SOURCE, icon_color='orange', hide=None,
                        expr=f'process_start_time_seconds{{{SERVER}}} * 1000 and on (instance) wan_build_info')


def number(title, unit, about, expression, legend='', width=4):
    return (prepared(stat.Panel(), title, unit, about, [(expression, legend)], width, 4)
            .graph_mode(common_model.BigValueGraphMode.AREA)
            .reduce_options(common.ReduceDataOptions().calcs(['lastNotNull'])))


def running(metric, *selectors):
    """Each device group runs a job of its own."""
    return (f'max by (instance, pod, group) ({metric}{{{",".join((MODEL, *selectors))}}})',
            WHO + ' group {{group}}')


def rows(title, uid, about, content, gpu=False, models=True):
    about += ' A curve without an instance in its legend is of all chosen servers together.'
    board = (dashboard.Dashboard(title).uid(uid).description(about).tags(['wanserve']).editable()
             .timezone('browser').refresh('30s').time('now-3h', 'now')
             .tooltip(model.DashboardCursorSync.CROSSHAIR)
             .with_variable(dashboard.DatasourceVariable('datasource').label('Data source').type('prometheus'))
             .with_variable(variable('namespace', 'Namespace', 'wan_build_info', 'namespace'))
             .with_variable(variable('pod', 'Pod', 'wan_build_info{namespace=~"$namespace"}', 'pod')))
    board = board.with_variable(variable('instance', 'Instance',
                                         'wan_build_info{namespace=~"$namespace",pod=~"$pod"}', 'instance'))
    board = board.annotation(RestartsBuilder())
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
        ('Alerts', [alerts()]),
        ('Now', [
            number('Models ready', 'short', 'Models that are resident and warm.', f'sum(wan_model_ready{{{MODEL}}})'),
            number('Jobs that wait', 'short', 'In all queues.', f'sum(wan_queue_length{{{MODEL}}})'),
            number('Age of the oldest job now', 's', 'How long the job that was accepted first has waited.',
                   f'max(wan_queue_oldest_seconds{{{MODEL}}})'),
            number('Work that waits', 's', 'Estimated seconds of execution of all jobs that wait.',
                   f'sum(wan_queued_seconds{{{MODEL}}})'),
            number('Seconds until the job ends', 's', 'The median estimate, by device group; nothing while no job runs or nobody knows.',
                   *running('wan_inflight_remaining_seconds', 'estimate="p50"')),
            number('Share of jobs that failed', 'percentunit', 'Of the jobs that ended by themselves within the last hour; of several servers the largest.',
                   f'max(wan:job_failure_ratio:1h{{{SERVER}}})'),
        ]),
        ('Queue and jobs', [
            graph('Length of the queue', 'short', 'Jobs that wait, and the capacity.',
                  (f'wan_queue_length{{{MODEL}}}', WHO + ' {{model}}'),
                  (f'wan_queue_capacity{{{SERVER}}}', WHO + ' capacity')),
            graph('Age of the oldest job', 's', 'Since its acceptance.',
                  (f'wan_queue_oldest_seconds{{{MODEL}}}', WHO + ' {{model}}')),
            graph('Jobs that ended', 'short', 'In a minute, by how they ended.',
                  (f'60 * sum by (state) (rate(wan_jobs_total{{{MODEL}}}[$__rate_interval]))', '{{state}}'), stacked=True),
            graph('Time from acceptance to end', 's', 'Median and 95th percentile of completed jobs.',
                  (f'histogram_quantile(0.5, sum by (le, model) (rate(wan_job_seconds_bucket{{{MODEL},state="completed"}}[30m])))',
                   '{{model}} p50'),
                  (f'histogram_quantile(0.95, sum by (le, model) (rate(wan_job_seconds_bucket{{{MODEL},state="completed"}}[30m])))',
                   '{{model}} p95')),
            graph('Jobs rejected', 'short', 'Jobs in a minute that were not accepted, by reason.',
                  (f'60 * sum by (reason) (rate(wan_jobs_rejected_total{{{SERVER}}}[$__rate_interval]))', '{{reason}}'),
                  width=8),
            graph('Jobs failed and cancelled', 'short', 'Jobs in a minute, by reason.',
                  (f'60 * sum by (reason) (rate(wan_job_failures_total{{{MODEL}}}[$__rate_interval]))', 'failed: {{reason}}'),
                  (f'60 * sum by (reason) (rate(wan_job_cancels_total{{{MODEL}}}[$__rate_interval]))', '{{reason}}'), width=8),
            graph('Jobs put back into the queue', 'short', 'Running jobs in a minute that went back to the queue, by reason.',
                  (f'60 * sum by (reason) (rate(wan_job_requeues_total{{{MODEL}}}[$__rate_interval]))', '{{reason}}'), width=8),
            graph('Time to stop a running job', 's', 'From the request until the device was free: 95th percentile. The goal is 0.5 s.',
                  (f'histogram_quantile(0.95, sum by (le, model) (rate(wan_stop_seconds_bucket{{{MODEL}}}[1h])))', '{{model}}')),
            graph('Time of jobs against the estimate', 'none',
                  'Median of the time that jobs took, divided by the median estimate; 1 is right. And the share of jobs '
                  'within the estimate for nine of ten.',
                  (f'histogram_quantile(0.5, sum by (le) (rate(wan_eta_ratio_bucket{{{MODEL},estimate="p50"}}[6h])))', 'ratio'),
                  (f'sum(rate(wan_eta_ratio_bucket{{{MODEL},estimate="p90",le="1.0"}}[6h])) '
                   f'/ sum(rate(wan_eta_ratio_count{{{MODEL},estimate="p90"}}[6h]))', 'within p90')),
        ]),
        ('Calls', [
            graph('gRPC calls by method', 'reqps', 'That ended, by method.',
                  (f'sum by (method) (rate(wan_grpc_calls_total{{{SERVER}}}[$__rate_interval])) > 0', '{{method}}')),
            graph('gRPC errors by code', 'reqps', 'By code, without OK.',
                  (f'sum by (code) (rate(wan_grpc_calls_total{{{SERVER},code!="OK"}}[$__rate_interval])) > 0', '{{code}}')),
            graph('Latency of gRPC calls', 's', '95th percentile of calls that are no streams.',
                  (f'histogram_quantile(0.95, sum by (le, method) (rate(wan_grpc_call_seconds_bucket{{{SERVER},'
                   'method!~".*/(Generate|Watch.*|DownloadArtifact|ServerReflectionInfo)"}[$__rate_interval])))',
                   '{{method}}')),
            graph('HTTP requests by route and code', 'reqps', 'Of the OpenAI video API, by route and code.',
                  (f'sum by (route, code) (rate(wan_http_requests_total{{{SERVER}}}[$__rate_interval])) > 0',
                   '{{route}} {{code}}')),
            graph('Open connections, streams, watchers', 'short', 'Open now.',
                  (f'wan_grpc_connections{{{SERVER}}}', WHO + ' connections'),
                  (f'wan_grpc_streams{{{SERVER}}}', WHO + ' streams'),
                  (f'wan_grpc_downloads{{{SERVER}}}', WHO + ' downloads'),
                  (f'wan_job_watchers{{{SERVER}}}', WHO + ' watchers of jobs')),
            graph('Calls refused because of load', 'short', 'Calls and connections in a minute.',
                  (f'60 * sum by (reason) (rate(wan_grpc_refused_calls_total{{{SERVER}}}[$__rate_interval]))', 'calls: {{reason}}'),
                  (f'60 * sum by (reason) (rate(wan_grpc_refused_connections_total{{{SERVER}}}[$__rate_interval]))',
                   'connections: {{reason}}')),
        ]),
        ('Data folder and process', [
            graph('Disk: free and reserved', 'bytes', 'Free, and what must stay free for accepted jobs and the reserve.',
                  (f'wan_disk_free_bytes{{{SERVER}}}', WHO + ' free'),
                  (f'wan_disk_reserved_bytes{{{SERVER}}}', WHO + ' reserved')),
            graph('Size of artifacts and database', 'bytes', 'Files of ended jobs, and the job database.',
                  (f'wan_artifact_bytes{{{SERVER}}}', WHO + ' artifacts'),
                  (f'wan_database_bytes{{{SERVER}}}', WHO + ' database')),
            graph('Time of writes to the database', 's', '95th percentile of a synced transaction.',
                  (f'histogram_quantile(0.95, sum by (le, operation) (rate(wan_store_write_seconds_bucket{{{SERVER}}}[$__rate_interval])))',
                   '{{operation}}')),
            graph('Use of the processors', 'percent', 'Of all cores: the machine, and the part of the server.',
                  (f'wan_cpu_percent{{{SERVER}}}', WHO + ' machine'),
                  (f'wan_process_cpu_percent{{{SERVER}}}', WHO + ' server'), most=100),
            graph('Memory of machine and server', 'bytes', 'Of the machine or container, and of the server.',
                  (f'wan_system_memory_used_bytes{{{SERVER}}}', WHO + ' machine'),
                  (f'wan_system_memory_total_bytes{{{SERVER}}}', WHO + ' there is'),
                  (f'process_resident_memory_bytes{{{SERVER}}} and on (instance) wan_build_info', WHO + ' server')),
            graph('Descriptors and threads', 'short', 'Of the server.',
                  (f'process_open_fds{{{SERVER}}} and on (instance) wan_build_info', WHO + ' descriptors'),
                  (f'process_threads{{{SERVER}}} and on (instance) wan_build_info', WHO + ' threads')),
        ]),
    ])


def gpu():
    def of(metric, what=''):
        return f'{metric}{{{GPU}}}', WHO + ' {{device}}' + what

    def mean(metric, what=''):
        return f'rate({metric}{{{GPU}}}[$__rate_interval])', WHO + ' {{device}}' + what

    return rows('wanserve: GPU and memory', 'wanserve-gpu', 'What the cards do, hold and draw.', [
        ('Work', [
            graph('Mean SM activity', 'percentunit', 'Mean between two points, from a counter.',
                  mean('wan_gpu_busy_seconds_total'), most=1),
            graph('Mean tensor and bandwidth activity', 'percentunit',
                  'Means between two points, from counters; GPM, absent where the card does not have it.',
                  mean('wan_gpu_tensor_seconds_total', ' tensor cores'), mean('wan_gpu_dram_seconds_total', ' bandwidth'), most=1),
            graph('SM activity in the last second', 'percent', 'The second before each scrape: gaps that the mean hides.',
                  of('wan_gpu_sm_activity_percent'), most=100),
            graph('Occupancy, tensor cores and bandwidth in the last second', 'percent',
                  'Resident warps, tensor cores and bandwidth in the second before each scrape; GPM.',
                  of('wan_gpu_sm_occupancy_percent', ' occupancy'), of('wan_gpu_tensor_activity_percent', ' tensor cores'),
                  of('wan_gpu_dram_bandwidth_percent', ' bandwidth'), most=100),
            graph('Clocks of SM and memory', 'hertz', 'Of multiprocessors and memory.',
                  of('wan_gpu_sm_clock_hertz', ' SM'), of('wan_gpu_memory_clock_hertz', ' memory')),
            graph('Share of time with clocks held down', 'percentunit', 'Share of the time, by reason; a card at work often stands at its power cap.',
                  (f'sum by (instance, pod, device, reason) (rate(wan_gpu_throttled_seconds_total{{{GPU}}}[$__rate_interval]))',
                   WHO + ' {{device}} {{reason}}')),
            graph('Temperature of the card', 'celsius', 'As the driver tells it.', of('wan_gpu_temperature_celsius')),
        ]),
        ('Power', [
            graph('Power of the card', 'watt', 'Drawn within the last second.', of('wan_gpu_power_watts')),
            graph('Energy in an hour', 'joule', 'Used by the card within the last hour.',
                  (f'increase(wan_gpu_energy_joules_total{{{GPU}}}[1h])', WHO + ' {{device}}')),
            graph('Energy for each video', 'joule', 'Energy of the last hour, divided by the jobs that completed in it.',
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
                  (f'wan_component_memory_bytes{{{MODEL}}}', WHO + ' {{model}} {{component}} on {{device}}'), stacked=True),
            graph('Memory of the server', 'bytes', 'Resident memory of the process, and its peak.',
                  (f'wan_process_memory_bytes{{{SERVER}}}', WHO + ' now'),
                  (f'wan_process_memory_peak_bytes{{{SERVER}}}', WHO + ' peak')),
            graph('Memory of the machine', 'bytes', 'Or of the container.',
                  (f'wan_system_memory_used_bytes{{{SERVER}}}', WHO + ' used'),
                  (f'wan_system_memory_total_bytes{{{SERVER}}}', WHO + ' there is')),
        ]),
        ('Failures', [
            graph('Device groups that serve', 'short', '1 while the group serves, 0 once a device of it is lost.',
                  (f'wan_device_group_serving{{{SERVER}}}', WHO + ' group {{group}}: {{device}}'), width=8),
            graph('Jobs that ran out of memory', 'short', 'Jobs in an hour that failed because memory ran out.',
                  (f'increase(wan_job_failures_total{{{MODEL},reason="OUT_OF_MEMORY"}}[1h])', WHO + ' {{model}}'), width=8),
            graph('Lost devices', 'short', '1 from the loss until the process ends.',
                  (f'wan_device_lost{{{SERVER}}}', WHO + ' {{cause}}'), width=8),
        ]),
    ], gpu=True)


def steps():
    return rows('wanserve: benchmark and steps', 'wanserve-steps', 'Where the time of jobs goes, and how fast steps are.', [
        ('Running jobs', [
            number('Steps done', 'none', 'Denoising steps of the running job that are done.', *running('wan_inflight_step')),
            number('Steps of the job', 'none', 'Denoising steps that the running job has in all.', *running('wan_inflight_steps')),
            number('Seconds since the start', 's', 'Since the attempt began.', *running('wan_inflight_elapsed_seconds')),
            number('Seconds to the end, median', 's', 'Median estimate.', *running('wan_inflight_remaining_seconds', 'estimate="p50"')),
            number('Seconds to the end, p90', 's', 'What nine of ten jobs do not exceed.',
                   *running('wan_inflight_remaining_seconds', 'estimate="p90"')),
            number('Seconds since the last step', 's', 'Since the attempt began, before the first.',
                   *running('wan_inflight_since_step_seconds')),
            graph('Progress of running jobs', 'percentunit', 'Steps that are done, by device group.',
                  (f'wan_inflight_step{{{MODEL}}} / (wan_inflight_steps{{{MODEL}}} > 0)', WHO + ' {{group}} {{model}}'), most=1),
            graph('Time in the current stage', 's', 'Since the running job entered it, by device group.',
                  (f'wan_inflight_stage_seconds{{{MODEL}}}', WHO + ' {{group}} {{model}} {{stage}}')),
        ]),
        ('Steps', [
            graph('Seconds of a step', 's', 'Median and 95th percentile by shape and quality; wrong by a fifth at most.',
                  (f'histogram_quantile(0.5, sum by (le, model, quality, shape) (rate(wan_step_seconds_bucket{{{MODEL}}}[$__rate_interval])))',
                   '{{model}} {{shape}} {{quality}} p50'),
                  (f'histogram_quantile(0.95, sum by (le, model, quality, shape) (rate(wan_step_seconds_bucket{{{MODEL}}}[$__rate_interval])))',
                   '{{model}} {{shape}} {{quality}} p95')),
            graph('Seconds of a step by expert', 's', 'Mean seconds of a step.',
                  (f'sum by (model, quality, shape, expert) (rate(wan_step_seconds_sum{{{MODEL}}}[$__rate_interval])) / '
                   f'(sum by (model, quality, shape, expert) (rate(wan_step_seconds_count{{{MODEL}}}[$__rate_interval])) > 0)',
                   '{{model}} {{shape}} {{quality}} {{expert}}')),
            graph('Achieved FLOP/s by stage', 'none', 'FLOP a second of denoising steps and of decoding, while they run.',
                  (f'sum by (model, stage) (rate(wan_stage_flops_total{{{MODEL}}}[$__rate_interval])) / '
                   f'(sum by (model, stage) (rate(wan_stage_seconds_sum{{{MODEL}}}[$__rate_interval])) > 0)',
                   '{{model}} {{stage}}')),
            graph('Step time against the day before', 'percentunit',
                  'Seconds for an operation within 15 minutes, divided by those of the day. Above 1.3 the alert WanserveStepsSlow fires.',
                  (f'wan:step_seconds_per_flop:15m{{{MODEL}}} / wan:step_seconds_per_flop:1d{{{MODEL}}}',
                   WHO + ' {{model}} {{shape}} {{quality}}')),
        ]),
        ('Where the time goes', [
            graph('Share of time by stage', 'percentunit', 'Of the time of all attempts, also failed and stopped ones; adds up to 1.',
                  (f'sum by (stage) (rate(wan_execution_seconds_total{{{MODEL}}}[30m])) / '
                   f'scalar(sum(rate(wan_execution_seconds_total{{{MODEL}}}[30m])) > 0)', '{{stage}}'), stacked=True, most=1),
            graph('Share of time by outcome', 'percentunit', 'Share of the time, by how the attempt ended.',
                  (f'sum by (outcome) (rate(wan_attempt_seconds_total{{{MODEL}}}[30m])) / '
                   f'scalar(sum(rate(wan_attempt_seconds_total{{{MODEL}}}[30m])) > 0)', '{{outcome}}'), stacked=True, most=1),
            graph('Seconds of each stage', 's', 'Mean of stages that ended well, without steps.',
                  (f'sum by (model, stage) (rate(wan_stage_seconds_sum{{{MODEL},stage!~"Step_.*|Total_Execution|Queue_Wait"}}[30m])) / '
                   f'(sum by (model, stage) (rate(wan_stage_seconds_count{{{MODEL},stage!~"Step_.*|Total_Execution|Queue_Wait"}}[30m])) > 0)',
                   '{{model}} {{stage}}')),
            graph('Seconds waiting and running', 's', 'Mean seconds in the queue and in execution.',
                  (f'sum by (model, stage) (rate(wan_stage_seconds_sum{{{MODEL},stage=~"Total_Execution|Queue_Wait"}}[30m])) / '
                   f'(sum by (model, stage) (rate(wan_stage_seconds_count{{{MODEL},stage=~"Total_Execution|Queue_Wait"}}[30m])) > 0)',
                   '{{model}} {{stage}}')),
            graph('Seconds to load a model', 's', 'Mean seconds of Model_Initialization.',
                  (f'wan_stage_seconds_sum{{{MODEL},stage="Model_Initialization"}} / '
                   f'wan_stage_seconds_count{{{MODEL},stage="Model_Initialization"}}', WHO + ' {{model}}')),
            graph('Seconds to write a savepoint', 's', 'Mean seconds of writing one, beside the steps.',
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
