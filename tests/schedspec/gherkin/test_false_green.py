"""Scenarios that passed although they were false are refused at their line, with the nearest correct name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from schedspec.gherkin import tables
from schedspec.gherkin.things import RunFacts
from schedspec.plugin import run_facts
from tests.schedspec.gherkin.conftest import MistakesOf, scenario, table

NODE = table("Given these nodes:", "node | cpu | memory | cards | card", "n1 | 8 | 64Gi | 8 | NVIDIA-A100")
GROUPS = table("Given these nodes:", "node | cpu | memory | group | labels", "n1 | 8 | 64Gi | a | zone=a")
QUEUE = table("Given these queues:", "queue | deserved", "research | cpu 4")
JOB = table("When these jobs are submitted:", "job | queue | cpu | cards | card", "train | {} | 1 | 1 | {}")


JOB_THEN = table("When these jobs are submitted:", "job | cpu", "j | 1") + "    Then {}\n"


ALWAYS = "cpu, memory, pods, ephemeral-storage"


def work(queue: str, model: str) -> str:
    return JOB.format(queue, model)


def queues(*rows: str) -> str:
    return table("Given these queues:", *rows)


JOBS_OF_THREE = table("When these {} are submitted:", "job | replicas | cpu", "train | 3 | 1")
WRONG = {
    "a refusal of work, which no sentence can state": (
        JOB_THEN.format('it is refused because of "cpu"'),
        "6: this sentence says nothing: no earlier sentence creates a submission that may be refused",
    ),
    "a pod of a job by another name": (
        JOBS_OF_THREE.format("jobs") + '    Then pod "train-0" stays pending\n',
        (
            "6: no earlier sentence creates a pod 'train-0' (is 'train-task-0' meant?); "
            "there are: train-task-0, train-task-1, train-task-2"
        ),
    ),
    "a pod beyond the replicas of a gang": (
        JOBS_OF_THREE.format("gangs").replace("job |", "gang |") + '    Then pod "train-task-9" stays pending\n',
        (
            "6: no earlier sentence creates a pod 'train-task-9' (is 'train-task-2' meant?); "
            "there are: train-task-0, train-task-1, train-task-2"
        ),
    ),
    "a pod of a Kubernetes Job, which has no name that is known": (
        JOBS_OF_THREE.format("Kubernetes jobs") + '    Then pod "train-0" stays pending\n',
        "6: no earlier sentence creates a pod 'train-0' (is 'train-?????' meant?); there are: train-?????",
    ),
    "an unknown queue of work": (
        NODE + QUEUE + work("reserch", "NVIDIA-A100"),
        "11: no sentence creates a queue 'reserch' (is 'research' meant?); there are: root, default, research",
    ),
    "an unknown parent": (
        queues("queue | parent", "research | dept"),
        "5: no sentence creates a queue 'dept'; there are: root, default, research",
    ),
    "a model of gpus that no node has": (
        NODE.replace("cards", "gpus") + QUEUE + work("research", "NVIDIA-A10").replace("cards", "gpus"),
        "11: no sentence creates a node with a card 'NVIDIA-A10' (is 'NVIDIA-A100' meant?); there are: NVIDIA-A100",
    ),
    "a model that no node has": (
        NODE + QUEUE + work("research", "NVIDIA-A10"),
        "11: no sentence creates a node with a card 'NVIDIA-A10' (is 'NVIDIA-A100' meant?); there are: NVIDIA-A100",
    ),
    "one of two models that no node has": (
        NODE + QUEUE + work("research", "NVIDIA-A100\\|NVIDIA-L4"),
        "11: no sentence creates a node with a card 'NVIDIA-L4' (is 'NVIDIA-A100' meant?); there are: NVIDIA-A100",
    ),
    "a quota of a model that no node has": (
        NODE + queues("queue | card quota", "research | NVIDIA-A10 2"),
        "8: no sentence creates a node with a card 'NVIDIA-A10' (is 'NVIDIA-A100' meant?); there are: NVIDIA-A100",
    ),
    "a resource of a queue that no node has": (
        NODE + queues("queue | deserved", "research | nvidia.com/gpus 8"),
        (
            "8: no sentence creates a node with the resource 'nvidia.com/gpus' (is 'nvidia.com/gpu' meant?); "
            "there are: cpu, memory, pods, ephemeral-storage, nvidia.com/gpu"
        ),
    ),
    "cards where no node has any": (
        table("Given these nodes:", "node | cpu | memory", "n1 | 8 | 64Gi")
        + queues("queue | deserved", "a | cards 16"),
        f"8: no sentence creates a node with the resource 'nvidia.com/gpu'; there are: {ALWAYS}",
    ),
    "a guarantee above what is deserved": (
        queues("queue | guarantee | deserved", "a | cpu 5 | cpu 4500m"),
        "5: guarantee cpu 5 is above deserved cpu 4500m",
    ),
    "deserved above the capability": (
        queues("queue | deserved | capability", "a | memory 2Gi | memory 1025Mi"),
        "5: deserved memory 2Gi is above capability memory 1025Mi",
    ),
    "a gang that needs more pods than it has": (
        table("When these jobs are submitted:", "job | replicas | min available", "train | 4 | 5"),
        "5: min available 5 is above replicas 4: the gang could never start",
    ),
    "two rows for one queue": (
        queues("queue | deserved", "a | cpu 1", "a | cpu 2"),
        "6: the queue 'a' has a row already, in line 5",
    ),
    "two rows for one node": (
        table("Given these nodes:", "node | cpu | memory", "n | 1 | 1Gi", "n | 2 | 1Gi"),
        "6: the node 'n' has a row already, in line 5",
    ),
    "two rows for one job": (
        table("When these jobs are submitted:", "job | cpu", "j | 1", "j | 2"),
        "6: the job 'j' has a row already, in line 5",
    ),
    "a reason without a word": (
        JOB_THEN.format('"j" waits because of ""'),
        "6: nearly every reason has the text '': name a word of the reason, such as capability",
    ),
    "a reason of one letter": (
        JOB_THEN.format('"j" waits because of "e"'),
        "6: nearly every reason has the text 'e': name a word of the reason, such as capability",
    ),
    "a queue that never holds less than nothing": (
        JOB_THEN.format('queue "default" never holds less than 0 cpu'),
        "6: this sentence says nothing: no queue can hold less than 0; name a larger amount",
    ),
    "a workload that shares no cards": (
        JOB_THEN.format('the pods of "j" share 0 cards'),
        "6: this sentence says nothing: work without shared cards uses parts of 0; name at least 1 card",
    ),
    "a node that is not there": (
        NODE + JOB_THEN.format('"j" runs on "n1, n2"'),
        "9: no earlier sentence creates a node 'n2'; there are: n1",
    ),
    "a group of nodes that is not there": (
        GROUPS + JOB_THEN.format('"j" runs on a node of group "b"'),
        "9: no earlier sentence creates a node of group 'b'; there are: a",
    ),
    "a group of nodes that a queue requires and that is not there": (
        GROUPS + queues("queue | node groups", "team | a, b"),
        "8: no sentence creates a node of group 'b'; there are: a",
    ),
    "a label that no node has": (
        GROUPS + JOB_THEN.format('"j" runs on nodes with "zone=b"'),
        (
            "9: no earlier sentence creates a node with the label 'zone=b' (is 'zone=a' meant?); "
            "there are: kubernetes.io/hostname=n1, zone=a"
        ),
    ),
    "pods that are spread over one node": (
        JOB_THEN.format('the pods of "j" are spread over 1 node'),
        "6: this sentence says nothing: pods on one node are not spread; name at least 2",
    ),
    "an empty node before any work": (
        NODE + '    Then no pod is on "n1"\n',
        "6: this sentence says nothing: no earlier sentence creates a workload",
    ),
    "two default classes": (
        table("Given these priority classes:", "class | value | default", "a | 1 | yes", "b | 2 | yes"),
        "6: a cluster has one default class, and an earlier row is it",
    ),
    "a preemption policy that does not exist": (
        table("Given these priority classes:", "class | value | preemption policy", "a | 1 | Never"),
        "5: preemption policy 'Never': write never or lower priority: what work of this class may evict",
    ),
    "a priority class that is deleted and is not there": (
        table("Given these priority classes:", "class | value", "low | 1")
        + '    When priority class "lo" is deleted\n',
        (
            "6: no earlier sentence creates a priority class 'lo' (is 'low' meant?); "
            "there are: system-cluster-critical, system-node-critical, low"
        ),
    ),
    "a range that is none": (
        JOB_THEN.format('between 4 and 2 pods of "j" run'),
        "6: this sentence says nothing: no range is between 4 and 2; write the smaller number first",
    ),
    "at least no pod": (
        JOB_THEN.format('at least 0 pods of "j" are evicted'),
        "6: this sentence says nothing: there are always at least 0; name at least 1",
    ),
    "a part of a resource that no node has": (
        JOB_THEN.format('queue "default" holds a third of the gpus'),
        f"6: no earlier sentence creates a node with the resource 'nvidia.com/gpu'; there are: {ALWAYS}",
    ),
    "an exit code with two actions": (
        table("When these jobs are submitted:", "job | cpu | on exit code", "j | 1 | 3 AbortJob, 3 RestartJob"),
        "5: on exit code '3 AbortJob, 3 RestartJob': 3 appears twice",
    ),
    "an exit code of success": (
        table("When these jobs are submitted:", "job | cpu | on exit code", "j | 1 | 0 AbortJob"),
        "5: on exit code '0 AbortJob': no pod fails with this exit code; write 1 to 255",
    ),
    "a timeout without a unit": (
        table("When these jobs are submitted:", "job | cpu | on PodPending", "j | 1 | AbortJob after 5"),
        "5: on PodPending 'AbortJob after 5': write a duration, for instance: 500ms, 2s or 1m30s",
    ),
    "an unknown number of pods that complete": (
        JOB_THEN.replace("Then {}", 'When between 1 and 2 pods of "j" complete'),
        "6: this sentence says nothing: an act needs one number: write 2, or half of the",
    ),
    "pods of work that does not exist complete": (
        JOB_THEN.replace("Then {}", 'When exactly 1 pod of "jj" completes'),
        "6: no earlier sentence creates a workload 'jj' (is 'j' meant?); there are: j",
    ),
    "an act on an unknown number of pods": (
        JOB_THEN.replace("Then {}", 'When at most 1 pods of "j" fail with exit code 3'),
        "6: this sentence says nothing: an act needs one number: write 2, or half of the",
    ),
    **{
        f"what arrives {number} times": (
            table(f"When every 5 seconds these jobs arrive, {number} times:", "job | cpu", "j | 1"),
            f"3: number {number}: write 2 to 1000 times: what arrives once is submitted",
        )
        for number in (1, 999999)
    },
    **{
        f"a time, {span}: {sentence}": (
            JOB_THEN.replace("Then {}", sentence.format(span) + '\n    Then "j" runs'),
            f"6: span '{span}': write at least 1 second, and at most 24 hours",
        )
        for span in ("0 seconds", "25 hours", "86401 seconds")
        for sentence in (
            "When {} pass",
            'When "j" stays pending for {}',
            'Then "j" keeps running for {}',
            "Then within {} all of this happens",
        )
    },
    "work that arrives all at once": (
        table("When every 0 minutes these jobs arrive, 2 times:", "job | cpu", "j | 1"),
        "3: span '0 minutes': write at least 1 second, and at most 24 hours",
    ),
    "a time within which nothing has to happen": (
        JOB_THEN.format('"j" runs') + "    And within 2 minutes all of this happens\n",
        "7: this sentence says nothing: no later sentence states an outcome",
    ),
    "no outcome but a time": (
        JOB_THEN.format("within 2 minutes all of this happens"),
        "6: this sentence says nothing: no later sentence states an outcome",
    ),
    "a share of which nothing is": (
        NODE + JOB_THEN.format('queue "default" never holds less than 0 % of the gpus'),
        "9: this sentence says nothing: no queue can hold less than 0; name a larger amount",
    ),
    **{
        f"policies that Volcano refuses together, {name}": (
            table(
                "When this job with tasks is submitted:",
                f"job | task | replicas | {name}",
                "j | a | 1 | AbortJob | SyncJob",
            ),
            f"5: on any event stands beside on {event}, and Volcano refuses both together: keep one of them",
        )
        for name, event in (
            ("on any event | on PodFailed", "PodFailed"),
            ("job on JobUpdated | job on any event", "JobUpdated"),
            ("on TaskCompleted | on any event", "TaskCompleted"),
        )
    },
    "the third of two that arrive": (
        table("When every 5 seconds these jobs arrive, 2 times:", "job | cpu", "j | 1") + '    Then "j-3" runs\n',
        "6: no earlier sentence creates a workload 'j-3' (is 'j-2' meant?); there are: j-1, j-2",
    ),
    "a PyTorchJob that needs more pods than it has": (
        table("When these PyTorchJobs are submitted:", "job | workers | min available", "train | 2 | 4"),
        "5: min available 4 is above the 3 pods of master and workers: the gang could never start",
    ),
    "gpus of a master that no node has": (
        table("When these PyTorchJobs are submitted:", "job | workers | master gpus", "train | 2 | 1"),
        f"5: no sentence creates a node with the resource 'nvidia.com/gpu'; there are: {ALWAYS}",
    ),
    "an order of one workload": (
        JOB_THEN.format("these start in this order:\n      | workload |\n      | j |"),
        "6: this sentence says nothing: an order has at least two workloads",
    ),
    "a workload that is evicted before itself": (
        JOB_THEN.format('"j" is evicted before any of "j"'),
        "6: this sentence says nothing: nothing is evicted before itself",
    ),
    "more evicted workloads than there are": (
        JOB_THEN.format("exactly 2 of these is evicted:\n      | workload |\n      | j |"),
        "6: this sentence says nothing: 2 of 1 rows can never be",
    ),
    "more running workloads than there are": (
        JOB_THEN.format("exactly 2 of these runs:\n      | workload |\n      | j |"),
        "6: this sentence says nothing: 2 of 1 rows can never be",
    ),
    "a list with an empty name": (
        JOB_THEN.format('each of "j, " has run'),
        "6: 'j, ': has an empty part: write a list such as: a, b",
    ),
    "a list without a name": (
        JOB_THEN.format('each of "" has run'),
        "6: '': has an empty part: write a list such as: a, b",
    ),
    "a name twice in a list": (
        JOB_THEN.format('each of "j, j" has run'),
        "6: 'j, j': j appears twice",
    ),
    "a node selector with an empty part": (
        table("When these jobs are submitted:", "job | node selector", "j | zone=a,"),
        "5: node selector 'zone=a,': has an empty part: write a list such as: a, b",
    ),
    "a gang that needs no pods": (
        JOB_THEN.format('the PodGroup of "j" has minMember 0'),
        "6: this sentence says nothing: every gang needs 0 pods; name at least 1",
    ),
    "a refusal without a word": (
        table("When this queue is submitted:", "queue", "a") + '    Then it is refused because of ""\n',
        "6: this sentence says nothing: every refusal has the empty text; name a word of it",
    ),
    "a status of nothing": (
        JOB_THEN.format("these queues have:\n      | queue | deserved |\n      | default | |"),
        "6: this sentence says nothing: the row of default has only its name; fill in another column",
    ),
    "a status of a resource that no node has": (
        NODE + JOB_THEN.format("these queues have:\n      | queue | allocated |\n      | default | amd.com/gpu 1 |"),
        (
            "11: no sentence creates a node with the resource 'amd.com/gpu' (is 'nvidia.com/gpu' meant?); "
            f"there are: {ALWAYS}, nvidia.com/gpu"
        ),
    ),
    "whichever of one workload": (
        JOB_THEN.format('"j" runs').replace("Then", 'And whichever of "j" runs completes\n    Then'),
        "6: this sentence says nothing: of one workload; write that it completes",
    ),
    "a failure with the exit code of success": (
        JOB_THEN.format('"j" runs').replace("Then", 'And pod "j-task-0" fails with exit code 0\n    Then'),
        "6: this sentence says nothing: no pod fails with this exit code; write 1 to 255",
    ),
    "an exit code that no process has": (
        JOB_THEN.format('"j" runs').replace("Then", 'And pod "j-task-0" fails with exit code 256\n    Then'),
        "6: this sentence says nothing: no pod fails with this exit code; write 1 to 255",
    ),
    "a gang whose minimum means all of its pods": (
        table("When these gangs are submitted:", "gang | replicas | min available", "g | 4 | 0"),
        "5: min available '0': write at least 1, or leave the cell empty: 0 would mean all replicas, as in Volcano",
    ),
    "a job of tasks that needs none of its pods": (
        table("When this job with tasks is submitted:", "job | task | replicas | min available", "j | a | 4 | 0"),
        "5: min available is 0 in every row, which would mean all replicas: a job needs at least 1 pod",
    ),
    "no evictions without work": (
        NODE + "    Then nothing is evicted\n",
        "6: this sentence says nothing: no earlier sentence creates a workload",
    ),
    "a count of evictions without work": (
        NODE + "    Then exactly 0 pods are evicted, once each\n",
        "6: this sentence says nothing: no earlier sentence creates a workload",
    ),
    "an amount that no work could hold": (
        '    When queue "default" is closed\n    Then queue "default" never holds less than 1 cpu\n',
        "4: this sentence says nothing: no earlier sentence creates a workload",
    ),
    "a limit that no work could exceed": (
        '    When queue "default" is closed\n    Then queue "default" holds at most 1 cpu\n',
        "4: this sentence says nothing: no earlier sentence creates a workload",
    ),
    "a limit of a queue without work": (
        QUEUE + JOB_THEN.format('queue "research" holds at most 1 cpu'),
        "9: this sentence says nothing: no earlier sentence creates work in queue 'research'",
    ),
    "a selected label that no node has": (
        table("Given these nodes:", "node | cpu | memory | labels", "n | 1 | 1Gi | zone=a")
        + table("When these jobs are submitted:", "job | node selector", "j | zone=b"),
        (
            "8: no sentence creates a node with the label 'zone=b' (is 'zone=a' meant?); "
            "there are: kubernetes.io/hostname=n, zone=a"
        ),
    ),
    "a cell behind the last bar of a row": (
        "    When these jobs are submitted:\n      | job | cpu |\n      | j | 1 | # two\n",
        "5: what follows the last | of a row is not read: # two; end the row with |",
    ),
    "a column behind the last bar of the header": (
        "    When these jobs are submitted:\n      | job | cpu | gpus\n      | j | 1 |\n",
        "4: what follows the last | of a row is not read: gpus; end the row with |",
    ),
    "a last cell whose bar is escaped": (
        "    When these jobs are submitted:\n      | job | cpu |\n      | j | 1 | A\\|\n",
        "5: what follows the last | of a row is not read: A\\|; end the row with |",
    ),
    "a reason with the work's own name": (
        JOB_THEN.format('"j" waits because of "j-task-0"'),
        "6: this sentence says nothing: the reasons of work may contain its name; name what it lacks",
    ),
    "a change of queues that names no value": (
        QUEUE + table("When these queues change:", "queue | deserved", "research | "),
        "6: this sentence says nothing: the row of research has only its name; fill in another column",
    ),
    "a resource in two columns": (
        NODE + table("When these jobs are submitted:", "job | gpus | nvidia.com/gpu", "j | 1 | 2"),
        "7: the columns 'gpus' and 'nvidia.com/gpu' mean the same: keep one of them",
    ),
    "a model twice": (
        NODE + table("When these jobs are submitted:", "job | gpus | card", "j | 1 | L4\\|L4"),
        "8: card 'L4|L4': has a model twice",
    ),
    "a node that joins beside its namesake": (
        NODE + NODE.replace("Given these nodes:", "When these nodes join:"),
        "6: a node 'n1' exists already, and would be replaced: write another name",
    ),
    "a queue that holds none before anything happens": (
        NODE + JOB_THEN.format("these queues have:\n      | queue | allocated |\n      | default | cpu 1, gpus 0 |"),
        (
            "11: allocated 'cpu 1, gpus 0': nvidia.com/gpu is 0 before anything happens: "
            "write that the queue holds 0 of it"
        ),
    ),
    "an amount of a queue without work": (
        QUEUE + JOB_THEN.format('queue "research" holds 0 cpu'),
        "9: this sentence says nothing: no earlier sentence creates work in queue 'research'",
    ),
    "a node without cpu": (
        table("Given these nodes:", "node | cpu | memory", "n | 0 | 1Gi"),
        "5: cpu '0': write more than 0: on a node without it no pod could run",
    ),
    "a node without memory": (
        table("Given these nodes:", "node | cpu | memory", "n | 1 | 0Gi"),
        "5: memory '0Gi': write more than 0: on a node without it no pod could run",
    ),
    "a node that takes no pods": (
        table("When these nodes join:", "node | cpu | memory | pods", "n | 1 | 1Gi | 0"),
        "5: pods '0': write more than 0: on a node without it no pod could run",
    ),
    **{
        f"half a device, {column}": (
            NODE + queues(f"queue | {column}", "a | cpu 1, gpus 500m"),
            f"8: {column} 'cpu 1, gpus 500m': write whole devices, for instance: 4",
        )
        for column in ("deserved", "capability", "guarantee")
    },
    **{
        f"half a device, {words}": (
            NODE + JOB_THEN.format(f'queue "default" {words} gpus'),
            f"9: amount '{words.split(maxsplit=given)[-1]} gpus': {problem}",
        )
        for words, given, problem in (
            ("holds 0.5", 1, "write whole devices, for instance: 4"),
            ("holds at most 1.5", 3, "write whole devices, for instance: 4"),
            ("never holds less than 500m", 4, "write whole devices, for instance: 4"),
            ("holds between 500m and 2", 1, "write whole devices, for instance: 4"),
            ("holds between 2 and 1", 1, "is no range: write the smaller amount first"),
        )
    },
    "two queues in a sentence about one": (
        table("When this queue is submitted:", "queue | weight", "a | 1", "b | 1"),
        "6: this sentence is about one thing: keep one row, and write a sentence for each other one",
    ),
    "two jobs in a sentence about one": (
        table("When this job with tasks is submitted:", "job | task | replicas", "a | x | 1", "b | y | 1"),
        "6: job b contradicts job a of an earlier row: a job has one job",
    ),
    "a job of the name of another": (
        table("Given these jobs run:", "job | cpu", "j | 1") + JOB_THEN.format('"j" runs'),
        "6: a workload 'j' exists already, and would be replaced: write another name",
    ),
    "a service of the name of a job": (
        table("Given these services run:", "service | cpu", "j | 1") + JOB_THEN.format('"j" runs'),
        "6: a workload 'j' exists already, and would be replaced: write another name",
    ),
    "a queue of the name of another": (
        QUEUE + QUEUE,
        "6: a queue 'research' exists already, and would be replaced: write another name",
    ),
    "a priority class of the name of another": (
        table("Given these priority classes:", "class | value", "high | 5")
        + table("Given these priority classes:", "class | value", "high | 7"),
        "6: a priority class 'high' exists already, and would be replaced: write another name",
    ),
    "a child that may hold more than its parent": (
        queues("queue | parent | capability", "org | root | cpu 4", "a | org | cpu 4", "b | org | cpu 5"),
        "7: capability 5 cpu is above 4 cpu of parent org",
    ),
    "children that deserve more than their parent": (
        queues("queue | parent | deserved", "org | root | cpu 4", "a | org | cpu 3", "b | org | cpu 2"),
        "7: all children together: deserved 5 cpu is above 4 cpu of parent org",
    ),
    "children that are guaranteed more than their parent": (
        queues("queue | parent | guarantee", "b | org | cpu 5000m", "org | root | cpu 4"),
        "5: guarantee 5 cpu is above 4 cpu of parent org",
    ),
    "a child that may hold more than its parent of another table": (
        queues("queue | parent | capability", "org | root | cpu 4")
        + queues("queue | parent | capability", "a | org | cpu 5"),
        "8: capability 5 cpu is above 4 cpu of parent org",
    ),
    "a change with which children deserve more than their parent": (
        queues("queue | parent | deserved", "org | root | cpu 4", "a | org | cpu 3", "b | org | cpu 1")
        + table("When these queues change:", "queue | deserved", "b | cpu 2"),
        "10: all children together: deserved 5 cpu is above 4 cpu of parent org",
    ),
    "work in a queue with children": (
        NODE + queues("queue | parent", "org | root", "a | org") + work("org", "NVIDIA-A100"),
        "12: queue 'org' has children, and takes no work: name one of a",
    ),
    "work in the root of a tree": (
        NODE + queues("queue | parent", "org | root", "a | org") + work("root", "NVIDIA-A100"),
        "12: queue 'root' has children, and takes no work: name one of org",
    ),
    **{
        f"a level of the network that no node names, {column}": (
            NODE
            + table("When these jobs are submitted:", f"job | replicas | partition | {column}", "j | 2 | 1 | rack"),
            "8: no sentence creates a node with a 'rack'; there are: none",
        )
        for column in ("required", "preferred", "partition required")
    },
    "work without pods": (
        table("When these services are submitted:", "service | replicas", "s | 0"),
        "5: replicas '0': write at least 1: of none nothing can be shown",
    ),
    "a guarantee above all nodes": (
        NODE + queues("queue | guarantee", "a | cards 9"),
        "8: guarantee nvidia.com/gpu 9 is above the 8 of all nodes: no scheduler can keep it",
    ),
    "guarantees that are together above all nodes": (
        queues("queue | guarantee", "a | memory 40Gi", "b | memory 25Gi") + NODE,
        (
            "6: all queues together: guarantee memory 69793218560 is above the 68719476736 of all nodes: "
            "no scheduler can keep it"
        ),
    ),
    "a guarantee that grows above all nodes": (
        NODE
        + queues("queue | parent | guarantee", "o | root | cpu 5", "a | o | cpu 5", "b | root | cpu 3")
        + table("When these queues change:", "queue | guarantee", "b | cpu 3500m"),
        "13: all queues together: guarantee cpu 8.500 is above the 8 of all nodes: no scheduler can keep it",
    ),
    "a model that is no value of a label": (
        '    Given a cluster with 8 cards "NVIDIA A100"\n',
        "3: model 'NVIDIA A100': write one word of at most 63 characters: letters, digits and any of - _ .",
    ),
    "a cluster without cards": (
        '    Given a cluster with 0 cards "A100"\n',
        "3: number 0: write at least 1: of none nothing can be shown",
    ),
    "memory without a unit": (
        table("When these jobs are submitted:", "job | memory", "j | 8"),
        "5: memory '8': is 8 bytes, which is hardly meant: write a unit, for instance 8Gi or 512Mi",
    ),
    "an amount of memory without a unit": (
        queues("queue | deserved", "a | cpu 4, memory 16"),
        "5: deserved 'cpu 4, memory 16': is 16 bytes, which is hardly meant: write a unit, for instance 8Gi or 512Mi",
    ),
    "a word that the scheduler would read as false": (
        table("When these jobs are submitted:", "job | preemptable", "j | yes"),
        "5: preemptable 'yes': write true or false",
    ),
    "a taint that no node has": (
        table("Given these nodes:", "node | cpu | memory | taints", "n | 1 | 1Gi | spot:NoSchedule")
        + table("When these jobs are submitted:", "job | tolerates", "j | spoot"),
        "8: no sentence creates a node with a taint 'spoot' (is 'spot' meant?); there are: spot",
    ),
    "memory in thousandths of a byte": (
        table("When these jobs are submitted:", "job | memory", "j | 4m"),
        "5: memory '4m': is less than a byte: write bytes, for instance 8Gi or 512Mi (m means thousandths)",
    ),
    "a reason that the scheduler never publishes": (
        table("When these jobs are submitted:", "job | cpu", "j | 1") + '    Then "j" waits because of "capabilty"\n',
        "6: the scheduler publishes no reason with the word 'capabilty' (is 'capability' meant?)",
    ),
}

RIGHT = {
    "times, shares and ranges that say something": NODE
    + JOB_THEN.format('"j" keeps running for 24 hours')
    + "    And within a minute all of this happens\n"
    + '    And queue "default" holds between 0 and 2 gpus\n    And queue "default" holds 500m cpu\n',
    "policies that Volcano accepts together": table(
        "When these jobs are submitted:", "job | on any event | on exit code", "j | AbortJob | 3 RestartJob"
    ),
    "a queue that a later sentence creates": work("late", "NVIDIA-A100").replace("When", "Given")
    + NODE
    + queues("queue | deserved", "late | cards 4"),
    "a node that joins later": queues("queue | deserved", "research | cpu 1")
    + work("research", "NVIDIA-A100")
    + NODE.replace("Given these nodes:", "When these nodes join:"),
    "a missing queue, if the scenario expects the refusal": NODE
    + work("absent", "NVIDIA-A100")
    + '    Then "train" waits because of "queue absent"\n',
    "a queue that the API server is expected to refuse": table(
        "When this queue is submitted:", "queue | parent | guarantee | deserved", "a | nobody | cpu 5 | cpu 4"
    )
    + '    Then it is refused because of "guarantee"\n',
    "the cluster's own nodes": "    Given the real nodes of the cluster\n" + QUEUE + work("research", "L4"),
    "a node of the sentence with cards": '    Given a cluster with 8 cards "L4"\n' + QUEUE + work("research", "L4"),
    "children that share what their parent has": queues(
        "queue | parent | capability | deserved",
        "org | root | cpu 4 | cpu 4",
        "a | org | cpu 4 | cpu 3",
        "b | org | cpu 4 |",
    ),
    "a refusal of work in a queue with children": NODE
    + queues("queue | parent", "org | root", "a | org")
    + work("org", "NVIDIA-A100")
    + '    Then "train" waits because of "children"\n',
    "a limit of a queue above the work": queues("queue | parent", "org | root", "a | org")
    + table("When these jobs are submitted:", "job | queue", "j | a")
    + '    Then queue "org" holds at most 1 cpu\n    And queue "root" holds at most 1 cpu\n',
    "a limit of the queue of work that names none": JOB_THEN.format('queue "default" holds at most 1 cpu'),
    "labels of a node that its other cells set": NODE
    + table("When these jobs are submitted:", "job | node selector", "j | nvidia.com/gpu.product=NVIDIA-A100")
    + table("When these pods are submitted:", "pod | node selector", "p | kubernetes.io/hostname=n1"),
    "guarantees that nodes can keep once more nodes have joined": NODE
    + queues("queue | guarantee", "a | cpu 8", "b | cpu 8")
    + NODE.replace("Given these nodes:", "When these nodes join:").replace("n1", "n2"),
    "a guarantee that the scenario expects to be refused": NODE
    + table("When this queue is submitted:", "queue | guarantee", "a | cpu 9")
    + '    Then it is refused because of "guarantee"\n',
    "a level of the network that a node names": table(
        "Given these nodes:", "node | cpu | memory | rack | spine", "n1 | 8 | 64Gi | r1 | s1"
    )
    + table("When these jobs are submitted:", "job | required", "i | rack", "j | spine"),
    "a queue that exists at the start": queues("queue | deserved", "default | cpu 1"),
    "a job that is submitted again after its deletion": table("Given these jobs run:", "job | cpu", "j | 1")
    + '    When "j" is deleted\n'
    + JOB_THEN.format('"j" runs'),
    "a node that returns": NODE
    + '    When node "n1" leaves with its pods\n'
    + NODE.replace("Given these nodes:", "When these nodes join:"),
    "several tasks of a job": table(
        "Given this job with tasks runs:", "job | task | replicas | min available", "j | a | 2 | 1", "j | b | 1 | 0"
    ),
    "a reason with names and numbers of the scenario": NODE
    + queues("queue | capability", "zebra | cards 2")
    + work("zebra", "NVIDIA-A100")
    + '    Then "train" waits because of "queue zebra: 2 of 2 nvidia.com/gpu"\n'
    + '    And "train" waits because of "NVIDIA-A100"\n'
    + '    And "train" waits because of "gpu"\n',
}


@pytest.mark.parametrize(("steps", "mistake"), WRONG.values(), ids=WRONG)
def test_a_scenario_that_can_only_pass_by_mistake_is_refused(mistakes_of: MistakesOf, steps: str, mistake: str) -> None:
    assert mistakes_of(scenario(steps), RunFacts(reason=run_facts.problem)) == [mistake]


@pytest.mark.parametrize("steps", RIGHT.values(), ids=RIGHT)
def test_a_correct_scenario_is_not_refused(mistakes_of: MistakesOf, steps: str) -> None:
    assert mistakes_of(scenario(steps), RunFacts(reason=run_facts.problem)) == []


def test_an_expected_refusal_of_one_workload_does_not_cover_another(mistakes_of: MistakesOf) -> None:
    steps = NODE + table("When these jobs are submitted:", "job | queue", "a | absent", "b | absent")
    mistake = mistakes_of(scenario(steps + '    Then "a" waits because of "queue"\n'))
    assert mistake == ["9: no sentence creates a queue 'absent'; there are: root, default"]


@pytest.mark.parametrize("number", ["-1", "0x2", "0b1", "1_0", "1.0", "+1"])
@pytest.mark.parametrize("sentence", ['exactly {} pods of "j" run', "exactly {} pods are evicted, once each"])
def test_a_number_in_a_sentence_is_written_in_plain_digits(mistakes_of: MistakesOf, sentence: str, number: str) -> None:
    (mistake,) = mistakes_of(scenario(JOB_THEN.format(sentence.format(number))))
    assert mistake.startswith("6: no step matches: Then exactly")


def test_amounts_accept_the_word_cards_for_gpus() -> None:
    assert tables.amounts("cpu 8, cards 16") == {"cpu": "8", "nvidia.com/gpu": "16"}
    with pytest.raises(ValueError, match=r"nvidia.com/gpu appears twice"):
        tables.amounts("cards 8, nvidia.com/gpu 8")


def test_a_column_of_examples_that_nothing_uses_is_refused(mistakes_of: MistakesOf) -> None:
    steps = table("When these jobs are submitted:", "job | cpu", "j | <cpu>") + '    Then "j" runs\n'
    text = (
        scenario(steps).replace("Scenario:", "Scenario Outline:")
        + "\n    Examples:\n      | cpu | note |\n      | 1 | a |\n"
    )
    (mistake,) = mistakes_of(text)
    assert mistake.partition(": ")[2] == "no step and no name of the outline uses <note>: use it, or remove the column"
    named = text.replace("Scenario Outline: ", "Scenario Outline: <note> ")
    assert mistakes_of(named) == []


BLANKS = {"a sentence": ('"j<value>" runs', "1"), "a part of a cell": ('"j" runs', "1<value>")}
BLANKS["a cell"] = ('"j" runs', "<value>")


@pytest.mark.parametrize("place", BLANKS)
def test_a_value_of_examples_may_be_blank_only_where_a_cell_may(mistakes_of: MistakesOf, place: str) -> None:
    sentence, cpu = BLANKS[place]
    steps = table("When these jobs are submitted:", "job | cpu", f"j | {cpu}") + f"    Then {sentence}\n"
    text = scenario(steps).replace("Scenario:", "Scenario Outline:") + "\n    Examples:\n      | value |\n"
    blank = "11: <value> is blank, and stands in a sentence: fill it in"
    assert (blank in mistakes_of(text + "      | 2 |\n      | |\n")) is (place != "a cell")
    absent = "9: no row has a value of <value>: fill one in, or remove the column"
    assert (absent in mistakes_of(text + "      | |\n")) is (place == "a cell")


IN_FORCE = {
    "again": ('Given the policy "a"', 'Given the policy "a"'),
    "again by its file": ('Given the policy of "a.yaml"', 'Given the policy of "a.yaml"'),
    "again in other words": ("Given a policy by which higher priority preempts lower priority",) * 2,
    "another between": ('Given the policy "a"', 'Given the policy "b"', 'Given the policy "a"'),
    "perhaps refused between": ('Given the policy "a"', 'When the policy "b" is given', 'Given the policy "a"'),
    "a file of that name": ('Given the policy "a"', 'Given the policy of "a"'),
}


@pytest.mark.parametrize("case", IN_FORCE)
def test_a_policy_that_is_in_force_already_is_not_given_again(mistakes_of: MistakesOf, case: str) -> None:
    job = table("Given these jobs are submitted:", "job | cpu", "j | 1")
    mistakes = mistakes_of(scenario("".join(f"    {line}\n" for line in IN_FORCE[case]) + job), RunFacts())
    assert [text.partition("is in force already")[1] != "" for text in mistakes] == [True] * case.startswith("again")


def test_a_setting_is_judged_by_the_policy_that_is_in_force_when_work_exists(mistakes_of: MistakesOf) -> None:
    def unread(policies: Sequence[tuple[str, str]], folder: Path) -> Mapping[str, str]:
        return {} if ("policy", "tree") in policies else {"parent": "has no effect"}

    tree, flat = '    Given the policy "tree"\n', '    Given the policy "flat"\n'
    first, last = queues("queue | parent", "a | root"), '    Then "j" runs\n'
    job = table("Given these jobs are submitted:", "job | cpu", "j | 1")
    facts = RunFacts(unread=unread)
    (mistake,) = mistakes_of(scenario(tree + first + flat + job + last), facts)
    assert mistake.endswith("parent has no effect")
    assert mistakes_of(scenario(flat + first + tree + job + last), facts) == []
    assert mistakes_of(scenario(tree + first + job + flat + last), facts) == []
