"""The programs of the experiment: a server with the demo model, Prometheus, Alertmanager, and a card that is not there."""

import http.server
import json
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
RULES = REPOSITORY / 'deploy' / 'prometheus'


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def await_true(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f'{what} within {seconds} s')
        time.sleep(0.2)


class Program:
    """A process that is gone when the with statement ends."""

    def __init__(self, arguments, log):
        self.arguments = [str(argument) for argument in arguments]
        self.log = open(log, 'w')
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE, stderr=self.log, text=True)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Server(Program):
    def __init__(self, build, folder):
        super().__init__([build / 'bin' / 'wanserve', '--listen', '127.0.0.1:0', '--metrics-listen', '127.0.0.1:0',
                          '--http-listen', '127.0.0.1:0', '--data-dir', folder / 'data', '--queue-capacity', '6',
                          '--checkpoint-interval', '0', '--cpu-threads', '2'], folder / 'wanserve.log')
        self.wanctl_path, self.folder = build / 'bin' / 'wanctl', folder

    def __enter__(self):
        super().__enter__()
        listening = json.loads(self.process.stdout.readline())
        self.grpc, self.metrics, self.http = listening['grpc'], listening['metrics'], listening['http']
        await_true(lambda: 'wan_model_ready{model="demo"} 1' in self.scrape(), 120, 'the demo model is ready')
        return self

    def scrape(self):
        with urllib.request.urlopen(f'http://{self.metrics}/metrics') as answer:
            return answer.read().decode()

    def start(self, *arguments):
        return subprocess.Popen([self.wanctl_path, '--server', self.grpc, '--json', *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def wanctl(self, *arguments):
        """What the command prints; empty if it failed, as some here are meant to."""
        process = self.start(*arguments)
        printed = process.communicate()[0]
        return printed if process.returncode == 0 else ''


class Card(threading.Thread):
    """Serves the metrics of a GPU that is busy, hot now and then, and lost at the end, as the server would. They are those
    of docs/operate/metrics.md, so that a metric that is renamed is missing here, too."""

    GAUGES = {'sm_activity_percent': 97, 'sm_occupancy_percent': 31, 'tensor_activity_percent': 55,
              'dram_bandwidth_percent': 22, 'memory_used_bytes': 9.6e10, 'memory_total_bytes': 1.5e11,
              'allocator_bytes': 9.1e10, 'power_watts': 640, 'temperature_celsius': 71, 'sm_clock_hertz': 1.755e9,
              'memory_clock_hertz': 3.201e9, 'processes': 1}
    # A second.
    COUNTERS = {'busy_seconds_total': 0.97, 'tensor_seconds_total': 0.55, 'dram_seconds_total': 0.22,
                'energy_joules_total': 640}
    THROTTLED = {'power cap': 0.8, 'temperature': 0.3}

    def __init__(self):
        super().__init__(daemon=True)
        card, began, self.lost = self, time.monotonic(), False
        page = (REPOSITORY / 'docs' / 'operate' / 'metrics.md').read_text()
        self.known = set(re.findall(r'^\| `wan_gpu_(\w+)', page, re.M))

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header('Content-Type', 'text/plain; version=0.0.4')
                self.end_headers()
                self.wfile.write(card.text(time.monotonic() - began).encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.address = f'127.0.0.1:{self.server.server_port}'

    def run(self):
        self.server.serve_forever()

    def text(self, seconds):
        labels = 'device="cuda:0",name="NVIDIA H200",UUID="GPU-0f3c"'
        served = set(self.GAUGES) | set(self.COUNTERS) | {'throttled_seconds_total'}
        if served != self.known:
            raise SystemExit(f'the card here and docs/operate/metrics.md differ: {sorted(served ^ self.known)}')
        lines = [f'wan_gpu_{name}{{{labels}}} {value}' for name, value in self.GAUGES.items()]
        lines += [f'wan_gpu_{name}{{{labels}}} {value * seconds}' for name, value in self.COUNTERS.items()]
        lines += [f'wan_gpu_throttled_seconds_total{{{labels},reason="{reason}"}} {value * seconds}'
                  for reason, value in self.THROTTLED.items()]
        lines += [f'wan_device_lost{{cause="error"}} {int(self.lost)}',
                  'wan_jobs_total{model="card",state="completed"} ' + str(int(seconds / 5))]
        return '\n'.join(lines) + '\n'


def with_addresses(targets, alertmanager):
    """The prometheus.yaml that is shipped, with these addresses and shorter intervals: nothing else, no label above all."""
    text = (RULES / 'prometheus.yaml').read_text()
    for shipped, here in (('"127.0.0.1:9464"', ', '.join(f'"{target}"' for target in targets)),
                          ('"127.0.0.1:9093"', f'"{alertmanager}"'),
                          ('scrape_interval: 10s', 'scrape_interval: 1s'),
                          ('evaluation_interval: 30s', 'evaluation_interval: 1s')):
        if text.count(shipped) != 1:
            raise SystemExit(f'deploy/prometheus/prometheus.yaml does not have {shipped} once')
        text = text.replace(shipped, here)
    return text


class Prometheus(Program):
    """Scrapes every second, as the shipped file says, with the repository's rules. It keeps exemplars."""

    def __init__(self, folder, targets, alertmanager):
        port = free_port()
        self.url = f'http://127.0.0.1:{port}'
        for name in ('recording.yaml', 'alerts.yaml'):
            text = (RULES / name).read_text().replace('interval: 30s', 'interval: 1s')
            (folder / name).write_text(text)
        (folder / 'prometheus.yaml').write_text(with_addresses(targets, alertmanager))
        super().__init__([program('prometheus'), f'--config.file={folder}/prometheus.yaml',
                          f'--storage.tsdb.path={folder}/tsdb', f'--web.listen-address=127.0.0.1:{port}',
                          '--enable-feature=exemplar-storage'], folder / 'prometheus.log')

    def __enter__(self):
        super().__enter__()
        await_true(lambda: answers(self.url + '/-/ready'), 60, 'Prometheus is ready')
        return self

    def ask(self, path, **parameters):
        with urllib.request.urlopen(f'{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}') as answer:
            return json.load(answer)['data']

    def now(self, expression):
        return self.ask('query', query=expression)['result']

    def value(self, expression):
        """The sum of what the expression gives now."""
        return sum(float(sample['value'][1]) for sample in self.now(expression))

    def exemplars(self, expression, start, end):
        """The labels of the exemplars that the series of the expression have."""
        found = self.ask('query_exemplars', query=expression, start=start, end=end)
        return [exemplar['labels'] for series in found for exemplar in series['exemplars']]

    def over(self, expression, start, end):
        """The series of a stretch of time, each a list of finite values."""
        result = self.ask('query_range', query=expression, start=start, end=end, step=1)['result']
        series = []
        for one in result:
            points = [(float(at), float(value)) for at, value in one['values'] if value not in ('NaN', '+Inf', '-Inf')]
            if points:
                series.append({'labels': one['metric'], 'points': points})
        return series


class Alertmanager(Program):
    def __init__(self, folder):
        port = free_port()
        self.address = f'127.0.0.1:{port}'
        (folder / 'alertmanager.yaml').write_text(json.dumps({'route': {'receiver': 'nobody'},
                                                              'receivers': [{'name': 'nobody'}]}))
        super().__init__([program('prometheus-alertmanager'), f'--config.file={folder}/alertmanager.yaml',
                          f'--storage.path={folder}/alertmanager', f'--web.listen-address={self.address}',
                          '--cluster.listen-address='], folder / 'alertmanager.log')

    def __enter__(self):
        super().__enter__()
        await_true(lambda: answers(f'http://{self.address}/-/ready'), 60, 'Alertmanager is ready')
        return self

    def alerts(self):
        with urllib.request.urlopen(f'http://{self.address}/api/v2/alerts') as answer:
            return {alert['labels']['alertname']: alert for alert in json.load(answer)}


def program(name):
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f'{name} is not there; scripts/prove monitoring unpacks it')
    return found
