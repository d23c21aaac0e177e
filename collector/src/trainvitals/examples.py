"""What `--help` shows of each command in use."""

EXAMPLES = {
    "": """
  trainvitals serve                          watch this machine on http://127.0.0.1:8080
  trainvitals serve --simulate 8 --scenario throttled
  trainvitals demo                           eight simulated GPUs and a run that meets trouble
  trainvitals top                            a dashboard in the terminal
  trainvitals monitor --gpus 0,1 --interval 0.5 --log-dir /tmp/gpu
  trainvitals once --json | jq '.gpus[].temperature_celsius'
  trainvitals sync gemma-qlora --to tensorboard=/tmp/tb
  trainvitals alerts                         what fires now and what ended lately
  trainvitals notify --test                  one message by each way to people that is set
  trainvitals doctor                         what was found here, what not, and what mends it""",
    "serve": """
  trainvitals serve                          this machine, on http://127.0.0.1:8080
  trainvitals serve --port 9000 --interval 0.5 --dir /data/trainvitals
  trainvitals serve --simulate 8 --scenario throttled
  trainvitals serve --sink tensorboard=/data/tb --sink mlflow=http://127.0.0.1:5000
  trainvitals serve --host 0.0.0.0           other machines too, with a link that holds a token
  trainvitals serve --host 0.0.0.0 --web-config web.yml --allowed-hosts gpu1.example
                                             and with a password""",
    "demo": """
  trainvitals demo                           on http://127.0.0.1:8080, gone without a trace at Ctrl-C
  trainvitals demo --port 9000""",
    "top": """
  trainvitals top                            of the agent here; without one it reads the GPUs itself
  trainvitals top --gpu 0 --interval 0.5 --run gemma-qlora
  trainvitals top --remote http://gpu1:8080
                                             another machine's, with its token in TRAINVITALS_TOKEN
  trainvitals top --simulate 8 --ascii""",
    "monitor": """
  trainvitals monitor                        all GPUs, a line a second
  trainvitals monitor --gpu 0 --interval 0.1
  trainvitals monitor --gpus 0,1 --summary-interval 300 --no-console --log-dir /tmp/gpu
  trainvitals monitor --prometheus-port 9090 --log-format json
  trainvitals monitor --wandb-project gpus --wandb-run-name night --no-console""",
    "sync": """
  trainvitals sync gemma-qlora --to tensorboard=/tmp/tb
  trainvitals sync gemma-qlora --to wandb=my-project --to mlflow=sqlite:////tmp/mlflow.db
  trainvitals sync /data/runs/gemma-qlora --to tensorboard=/tmp/tb""",
    "once": """
  trainvitals once                           utilisation and memory of each GPU
  trainvitals once --json | jq '.gpus[] | {gpu, temperature_celsius, power_draw_watts}'""",
    "doctor": """
  trainvitals doctor                         exit status 0: all well, 1: something is to be mended
  trainvitals doctor --dir /data/trainvitals --port 9000""",
    "alerts": """
  trainvitals alerts                         the worst first
  trainvitals alerts --json | jq '.firing[].labels'""",
    "alertmanager-config": """
  trainvitals alertmanager-config --out /etc/alertmanager
                                             of SLACK_WEBHOOK_URL, SMTP_HOST … as docs/alerts.md lists them""",
    "replay": """
  trainvitals replay /var/lib/trainvitals/runs/gemma-qlora    what would have been told of it, and when
  trainvitals replay --json run-folder | jq -c .kind""",
    "alert-test": """
  trainvitals alert-test                     by each way that is set; exit status 1: one of them failed
  trainvitals alert-test --alertmanager http://gpu1:9093 --log alertmanager.log""",
    "notify": """
  trainvitals notify                         can each way be used? nothing is sent
  trainvitals notify --test                  one message by each; exit status 1: one of them failed
  trainvitals notify --test --notify email --notify alertmanager=http://127.0.0.1:9093
  trainvitals notify --test --notify apprise=ntfy://ntfy.sh/my-topic""",
}
