import { expect, test } from "vitest";
import { plainLine, sessionTitle } from "../src/markup";

test("a pasted plan is called by its first heading", () => {
  const opening = `Implement the following plan: # Plan: Wingman notifications ## Context ${"x".repeat(200)}`;
  expect(sessionTitle({ title: "", opening })).toBe(
    "Implement the following plan: Plan: Wingman notifications",
  );
});

test("an opening that was cut says so, and a title stays as it is", () => {
  expect(sessionTitle({ title: "", opening: "a ".repeat(100) })).toMatch(/a…$/);
  expect(sessionTitle({ title: "Which index is used?", opening: "" })).toBe("Which index is used?");
});

test("a line that breaks off at the first number of a list ends before it", () => {
  expect(plainLine("Build and test: 1.")).toBe("Build and test");
});
