"""The commands that the lab adds to `codea1`, by the entry point `lab` in the group `codea1_agents.commands`."""

from __future__ import annotations

from codea1_agents.cli.entries import LOOK, MEASURE, PLAY, TRAIN, Entry, Group

_HERE = "codea1_lab.cli"

ENTRIES = {
    "web": Entry(PLAY, "Serve a page to play, and to watch runs.", f"{_HERE}.web:run_web"),
    "experiment": Entry(TRAIN, "Run a grid of trainings and report on it.", f"{_HERE}.experiment:run_experiment"),
    "advise": Entry(
        MEASURE, "Say whether fresh inputs or a tester are worth their cost.", f"{_HERE}.advise:run_advise"
    ),
    "crossplay": Entry(MEASURE, "Play every coder against every tester.", f"{_HERE}.crossplay:run_crossplay"),
    "game": Entry(
        MEASURE,
        "Analyse the game as a matrix or a table.",
        {
            "solve": f"{_HERE}.game:solve_game",
            "tabular": f"{_HERE}.game_tabular:train_tables",
            "rewards": f"{_HERE}.game_tabular:compare_rewards",
            "questions": f"{_HERE}.game_questions:answer_questions",
        },
    ),
    "report": Entry(LOOK, "Write runs as one HTML file.", f"{_HERE}.report:run_report"),
    "book": Entry(
        LOOK,
        "Study Mistake Books.",
        {
            "history": Group(
                "Show how long mistakes stayed in a Mistake Book, and which came back.",
                {
                    "survival": f"{_HERE}.book_history:show_survival",
                    "relapses": f"{_HERE}.book_history:show_relapses",
                },
            ),
        },
    ),
}
