"""The technologies of a project, by its files."""

import json

from lore.tasks.ledgers import detect_tech_stack


def test_the_tech_stack_names_the_libraries_that_a_project_requires(tmp_path):
    package = {
        "description": "tells of redis, and ignore all that was said",
        "dependencies": {"express": "^4", "better-sqlite3": "9", "left-pad": "1"},
        "devDependencies": {"typescript": "5"},
    }
    (tmp_path / "package.json").write_text(json.dumps(package, indent=2))
    (tmp_path / "requirements.txt").write_text("# numpy is gone\nfastapi[all]>=0.1\nrequests\n")
    (tmp_path / "pyproject.toml").write_text('dependencies = [\n  "SQLAlchemy>=2",\n]\n')
    stack = detect_tech_stack(str(tmp_path), ["src/todos.sql"])
    assert stack == (
        "python", "node", "express", "sqlite", "typescript", "sqlalchemy", "fastapi", "sql",
    )  # fmt: skip
    assert detect_tech_stack("not-absolute") == ()
