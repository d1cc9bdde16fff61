"""Show what a change does to a cluster before it is made, by comparing two worlds from one state.

`make.make_plan` returns the `answer`:

1. `changes` finds the differences between the present and the proposed files, and builds the second world; `submitted`
   adds work to that world.
2. A `DecidingScheduler` (`make`) runs both worlds until they settle while nothing ends: who is evicted, starts
   or wait. `at_once` does so with our scheduler, `schedspec.lab.twin` with the cluster's own.
3. `over_load` runs both worlds over a load with our scheduler: waits, evictions, lost work, time below the guarantee.
4. `text` and `page` render the answer, `verdict` compares it with what a pipeline permits.
5. `sources` finds the two sets of files in a repository, `rules` runs the team's own scenarios, and `foreign` names the
   known differences of the scheduler that serves the cluster.

Both worlds run through the same code with the same assumptions, which the answer lists.
"""

from .answer import Plan
from .changes import ChangeError, Side
from .make import Request, make_plan
from .text import queue_line, render_markdown, render_text
from .verdict import Condition, judge, parse_conditions
