"""Every lifecycle there is."""

from imprint.lifecycles.account import ACCOUNT
from imprint.lifecycles.content import CONTENT
from imprint.lifecycles.derivation import DERIVATION
from imprint.lifecycles.lifecycle import Lifecycle
from imprint.lifecycles.object import OBJECT
from imprint.lifecycles.post import POST
from imprint.lifecycles.publication import PUBLICATION
from imprint.lifecycles.source import SOURCE

LIFECYCLES: tuple[Lifecycle, ...] = (POST, PUBLICATION, CONTENT, OBJECT, DERIVATION, SOURCE, ACCOUNT)
