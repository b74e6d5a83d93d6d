from __future__ import annotations

from lore.tasks.checkouts import find_roots, relative_path


def test_a_single_checkout_is_the_root_of_its_files():
    tasks = [("/w/p/web/a.ts", "/w/p/api/b.py"), ("/w/p/api/c.py",)]
    assert find_roots(tasks) == ("/w/p",)
    assert relative_path("/w/p/web/a.ts", ("/w/p",)) == "web/a.ts"


def test_worktrees_and_homes_are_roots_of_the_same_files():
    tasks = [
        ("/home/ann/cli/cmd/a.go", "/home/ann/cli/cmd/b.go"),
        ("/home/bob/src/cli/cmd/a.go", "/home/bob/src/cli/cmd/b.go"),
        ("/home/ann/cli/.worktrees/3/cmd/a.go", "/home/ann/cli/.worktrees/3/cmd/b.go"),
    ]
    roots = find_roots(tasks)
    names = {relative_path(path, roots) for files in tasks for path in files}
    assert names == {"cmd/a.go", "cmd/b.go"}


def test_files_of_one_name_in_one_checkout_stay_apart():
    tasks = [
        ("/w/p/web/src/types/user.ts", "/w/p/api/src/types/user.ts"),
        ("/w/p/web/src/types/team.ts", "/w/p/api/src/types/team.ts"),
    ]
    roots = find_roots(tasks)
    names = {relative_path(path, roots) for files in tasks for path in files}
    assert len(names) == 4


def test_the_known_folder_is_a_root():
    assert find_roots([("/w/p/web/a.ts",)], "/w/p") == ("/w/p",)
    assert "/w/p" not in find_roots([("/else/web/a.ts",)], "/w/p")


def test_windows_paths_and_paths_without_a_root():
    assert relative_path("D:\\p\\src\\a.go", ("D:/p",)) == "src/a.go"
    assert relative_path("src/a.go") == "src/a.go"
    assert relative_path("/a/b/c/d/e.go") == "c/d/e.go"
    assert find_roots([]) == ()
