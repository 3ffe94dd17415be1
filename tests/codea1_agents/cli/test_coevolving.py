from __future__ import annotations

import json

from codea1_agents.train.tiny.demonstration import Change
from tests.support.command_line import check_document


def test_its_document_has_a_schema() -> None:
    figures = Change(60, 0.25, 0.59, 0.38, 0.57, 0.81, 0.73).to_dict()
    document = {"out": "run", "picture": "p.svg", "versions": {"codea1-env": "0.1.0", "judge": 4}, **figures}
    check_document(["demo", "coevolve"], json.dumps(document))
