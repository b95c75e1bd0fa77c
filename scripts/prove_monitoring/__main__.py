"""Prometheus and Alertmanager beside a real server under a mixed load: every query of every panel and rule has data and
every curve a legend of its own, the figures agree with the jobs' reports, and an alert arrives. scripts/prove monitoring runs it."""

import argparse
import json
import pathlib
import re
import signal
import tempfile
import time
import urllib.error
import urllib.request

from prove_monitoring.legend import legend_of
from prove_monitoring.programs import REPOSITORY, Alertmanager, Card, Prometheus, Server, await_true

FAILURES = []


def expect(condition, text):
    print(('held      ' if condition else 'NOT HELD  ') + text, flush=True)
    if not condition:
        FAILURES.append(text)


def as_grafana_asks(query):
    query = re.sub(r'\$(namespace|pod|instance|model|gpu)\b', '.*', query)
    # As Grafana does: never less than four scrapes.
    return query.replace('$__rate_interval', '15s')


def boards():
    """(name, content) of every dashboard."""
    for path in sorted((REPOSITORY / 'deploy' / 'grafana').glob('*.json')):
        yield path.stem, json.loads(path.read_text())


def panels():
    """(dashboard, panel, legend, unit, query) of every query; the legend of a table is None."""
    for name, board in boards():
        for panel in board['panels']:
            for target in panel.get('targets', []):
                legend = None if panel['type'] == 'table' else target['legendFormat']
                yield (name, panel['title'], legend, panel['fieldConfig']['defaults'].get('unit'),
                       as_grafana_asks(target['expr']))


def check_legends(where, legend, series):
    """No curve has a blank legend or that of another one; a single curve needs none."""
    if legend is None or (legend == '' and len(series) == 1):
        return
    texts = [legend_of(legend, one['labels']) for one in series]
    alike = sorted({text for text in texts if not text or texts.count(text) > 1})
    if alike:
        expect(False, f'{where}: several curves, or one without a legend, are called {alike}')


def rules(kind):
    """(name, expression) of every rule of a kind, from Prometheus itself."""
    for group in PROMETHEUS.ask('rules')['groups']:
        for rule in group['rules']:
            if rule['type'] == kind:
                yield rule['name'], rule['query']


def http(server, path, body=None):
    request = urllib.request.Request(f'http://{server.http}{path}', data=body and json.dumps(body).encode(),
                                     headers={'Content-Type': 'application/json'})
    try:
        return json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError as error:
        return {'code': error.code}


def load(server, seconds):
    """Jobs of several sizes, some of them cancelled, late, wrong or too many; watchers; HTTP."""
    def generation(text, *more):
        return ['--model', 'demo', '--prompt', text, *more]

    end, round_number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        round_number += 1
        steps = ('--steps', str(6 + round_number % 3 * 2))
        watched = server.wanctl('submit', *generation('a red ball moves to the right', *steps)).strip()
        http(server, '/v1/videos', {'model': 'demo', 'prompt': 'a blue square moves up'})
        cancelled = server.wanctl('submit', *generation('a green ball', '--steps', '50')).strip()
        late = server.start('generate', *generation('a yellow ball', '--steps', '50', '--deadline', '3',
                                                   '--output', str(server.folder / 'late.mp4')))
        server.wanctl('submit', *generation('wrong', '--size', '33x33'))
        http(server, '/v1/videos', {'model': 'nobody', 'prompt': 'wrong'})
        http(server, '/nowhere')
        names = [json.loads(text)['name'] for text in (watched, cancelled) if text]
        if len(names) < 2:
            time.sleep(2)
            continue
        watcher = server.start('watch', names[0])
        http(server, '/v1/videos')
        if round_number % 3 == 0:  # more than the queue takes
            for _ in range(8):
                server.wanctl('submit', *generation('one of many', '--steps', '4'))
        watcher.wait()
        # Cancelled while it runs.
        await_true(lambda: json.loads(server.wanctl('get', names[1]))['state'] != 'JOB_STATE_QUEUED', 120, 'a job runs')
        server.wanctl('cancel', names[1])
        if late.poll() is None:
            late.send_signal(signal.SIGINT)
        late.communicate()


def idle(server):
    text = server.scrape()
    return 'wan_active_jobs{state="running"} 0' in text and 'wan_active_jobs{state="queued"} 0' in text


def listed_jobs(server):
    lines = server.wanctl('list', '--limit', '1000').splitlines()
    return [job for line in lines for job in json.loads(line).get('jobs', [])]


def reports(server):
    jobs, stages = listed_jobs(server), {}
    for job in jobs:
        text = server.wanctl('report', job['name'])
        for stage in json.loads(text).get('stages', []) if text else []:
            if stage.get('error'):
                continue
            name = re.sub(r'_\d+_', '_', stage['stage'])
            stages.setdefault(name, []).append(stage.get('seconds', 0))
    return jobs, stages


def check_agreement(server):
    jobs, stages = reports(server)
    instance = f'instance="{server.metrics}"'
    for state in ('COMPLETED', 'CANCELLED', 'FAILED'):
        wanted = sum(job['state'] == f'JOB_STATE_{state}' for job in jobs)
        got = PROMETHEUS.value(f'wan_jobs_total{{{instance},state="{state.lower()}"}}')
        expect(got == wanted, f'{wanted} jobs are {state}: wan_jobs_total has {got:g}')
    for name, seconds in sorted(stages.items()):
        selector = f'{{{instance},stage="{name}"}}'
        count = PROMETHEUS.value(f'wan_stage_seconds_count{selector}')
        total = PROMETHEUS.value(f'wan_stage_seconds_sum{selector}')
        expect(count == len(seconds) and abs(total - sum(seconds)) <= 1e-6 * total + 1e-9,
               f'{name}: {len(seconds)} stages of {sum(seconds):.3f} s in the reports, {count:g} of {total:.3f} s in the metrics')
    spent = PROMETHEUS.value(f'wan_execution_seconds_total{{{instance}}}')
    attempts = PROMETHEUS.value(f'wan_attempt_seconds_total{{{instance}}}')
    expect(abs(spent - attempts) < 0.01, f'the stages add up: {spent:.3f} s of stages, {attempts:.3f} s of attempts')
    whole = sum(stages['Total_Execution'])
    completed = PROMETHEUS.value(f'wan_attempt_seconds_total{{{instance},outcome="completed"}}')
    expect(abs(completed - whole) < 0.01 * whole,
           f'Total_Execution of completed jobs: {whole:.3f} s in the reports, {completed:.3f} s in the metrics')


def check_exemplars(server, start, end):
    """They come with OpenMetrics alone, so they also prove that Prometheus was given that."""
    known = {job['name'] for job in listed_jobs(server)}
    named = {exemplar['job'] for exemplar in PROMETHEUS.exemplars('wan_job_seconds_bucket', start, end)}
    expect(named and named <= known, f'the exemplars of wan_job_seconds name {len(named)} jobs that the server has')


def check_queries(start, end):
    drawn = []
    for board, title, legend, unit, query in panels():
        series = PROMETHEUS.over(query, start, end)
        where = ' (the card is not a real one)' if 'wan_gpu_' in query else ''
        expect(series, f'{board}, {title}: {sum(len(one["points"]) for one in series)} values in {len(series)} series{where}'
               + ('' if series else f'\n          {query}'))
        check_legends(f'{board}, {title}', legend, series)
        drawn.append({'board': board, 'panel': title, 'legend': legend, 'unit': unit, 'query': query, 'series': series})
    for board, content in boards():
        for mark in content['annotations']['list']:
            series = PROMETHEUS.over(as_grafana_asks(mark['expr']), start, end)
            expect(series, f'{board}, the mark {mark["name"]}: {len(series)} series')
            check_legends(f'{board}, the mark {mark["name"]}', mark['textFormat'], series)
    for name, query in rules('recording'):
        expect(PROMETHEUS.over(name, start, end), f'the rule {name} has data')
    # An alert that does not fire gives nothing: everything that it reads must be there.
    for name, query in rules('alerting'):
        read = set(re.findall(r'((?:wan[_:]\w[\w:]*|\bup)(?:\{[^}]*\})?)', query))
        missing = [one for one in read if not PROMETHEUS.over(one, start, end)]
        expect(not missing, f'what the alert {name} reads has data' + ''.join(f'\n          {one}' for one in missing))
    return drawn


def main():
    global PROMETHEUS
    parser = argparse.ArgumentParser(prog='scripts/prove monitoring', description=__doc__)
    parser.add_argument('--build', type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument('--seconds', type=float, default=90, help='how long the load lasts (default: 90)')
    parser.add_argument('--save', type=pathlib.Path, help='a file for the values of every panel, from which '
                        'scripts/prove_monitoring/sheet.py draws them')
    arguments = parser.parse_args()
    card = Card()
    card.start()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with Server(arguments.build, folder) as server, Alertmanager(folder) as alertmanager, \
                Prometheus(folder, [server.metrics, card.address], alertmanager.address) as PROMETHEUS:
            start = time.time()
            load(server, arguments.seconds)
            await_true(lambda: idle(server), 300, 'all jobs end')
            card.lost = True
            await_true(lambda: 'WanserveDeviceLost' in alertmanager.alerts(), 60, 'the alert arrives')
            time.sleep(3)  # the last scrape
            alert = alertmanager.alerts()['WanserveDeviceLost']
            page, anchor = alert['annotations']['runbook_url'].split('#')
            sections = [line[3:].strip().lower() for line in
                        (REPOSITORY / 'docs' / 'operate' / 'runbook.md').read_text().splitlines() if line.startswith('## ')]
            expect(anchor in sections and '://' in page and alert['annotations']['description'],
                   f'Alertmanager has {alert["labels"]["alertname"]}: {alert["annotations"]["summary"]}')
            check_agreement(server)
            check_exemplars(server, start, time.time())
            drawn = check_queries(start, time.time())
            if arguments.save:
                arguments.save.write_text(json.dumps(drawn))
    print(f'{len(FAILURES)} of the checks were not held' if FAILURES else 'all checks were held')
    return 1 if FAILURES else 0


if __name__ == '__main__':
    raise SystemExit(main())
