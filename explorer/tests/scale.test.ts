import { expect, test } from "vitest";
import { roundSteps, spacedColumns } from "../src/scale";

test("lines across a chart have round values below the largest one", () => {
  expect(roundSteps(0.739)).toEqual([0.25, 0.5]);
  expect(roundSteps(100)).toEqual([50]);
  expect(roundSteps(7)).toEqual([2, 4, 6]);
  expect(roundSteps(1)).toEqual([0.5]);
});

test("a chart without values has no lines", () => {
  expect(roundSteps(0)).toEqual([]);
  expect(roundSteps(NaN)).toEqual([]);
});

test("dates are spaced evenly, and few days have one each", () => {
  expect(spacedColumns(30, 6)).toEqual([0, 5, 10, 15, 20, 25]);
  expect(spacedColumns(3, 6)).toEqual([0, 1, 2]);
  expect(spacedColumns(1, 6)).toEqual([0]);
});
