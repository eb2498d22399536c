"""Responsiveness (RPM, draft-ietf-ippm-responsiveness): a server, and measurements of such servers
as Runs."""

from sojourn_live.defaults import RpmService as RpmService
from sojourn_live.rpm.client import BOTH as BOTH
from sojourn_live.rpm.client import SERIAL as SERIAL
from sojourn_live.rpm.client import RpmParameters as RpmParameters
from sojourn_live.rpm.client import RpmPlan as RpmPlan
from sojourn_live.rpm.client import RpmProgress as RpmProgress
from sojourn_live.rpm.client import measure as measure
from sojourn_live.rpm.client import to_dict as to_dict
from sojourn_live.rpm.service import is_loopback as is_loopback
from sojourn_live.rpm.service import server as server
from sojourn_live.rpm.service import url as url
