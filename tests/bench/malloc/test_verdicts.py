# SPDX-License-Identifier: Apache-2.0
"""From figures to verdicts, on figures made up here."""
import pathlib
import unittest

import verdicts
from allocators import ACTIVE, BASE, MODE_OFF, NOISE, NONE, PRODUCT, SIZE_RULES, all_variants
from jobs import Figures, StartUp
from programs import all_programs

BENCH = pathlib.Path(__file__).resolve().parents[1]


def row(name, seconds, by_wall=False, is_program=False, peaks=None):
    """A row from variant -> seconds of each round; the other kind of time says the opposite."""
    result = verdicts.Row(name, by_wall, is_program)
    for variant, rounds in seconds.items():
        for value in rounds:
            other = value and 1 / value
            times = (other, value) if by_wall else (value, other)
            result.add(variant, value and Figures(*times, (peaks or {}).get(variant, 1000)))
    return result


def steady(name, product, **more):
    """A row whose noise floor is 1 and whose product is so many times as fast as the base."""
    return row(name, {BASE: [product], NOISE: [product], PRODUCT: [1.0]}, **more)


def verdict_of(what, rows):
    return next(target.verdict for target in verdicts.targets(rows) if target.what.startswith(what))


class Ratios(unittest.TestCase):
    def test_rounds_are_paired_and_the_median_is_of_the_ratios(self):
        slow_second_round = row("a", {BASE: [1.0, 9.0, 1.0], PRODUCT: [0.5, 9.0, 1.25]})
        self.assertEqual(slow_second_round.speed(PRODUCT).rounds, (2.0, 1.0, 0.8))
        self.assertEqual(str(slow_second_round.speed(PRODUCT)), "1.00 [0.80-2.00]")

    def test_a_round_without_figures_is_left_out_of_both(self):
        self.assertEqual(row("a", {BASE: [1.0, 2.0], PRODUCT: [None, 1.0]}).speed(PRODUCT).rounds, (2.0,))
        self.assertIsNone(row("a", {BASE: [1.0]}).speed(PRODUCT))

    def test_rows_of_two_threads_compare_wall_time(self):
        self.assertEqual(row("a", {BASE: [2.0], PRODUCT: [1.0]}, by_wall=True).speed(PRODUCT).median, 2.0)

    def test_memory_above_one_is_more(self):
        self.assertEqual(steady("a", 1, peaks={PRODUCT: 2000}).memory(PRODUCT).median, 2.0)


class Verdicts(unittest.TestCase):
    def test_the_limit_itself_is_met(self):
        self.assertEqual(steady("a", 0.97).verdict(), "met")
        self.assertEqual(steady("a", 0.969).verdict(), "missed")

    def test_a_row_whose_base_differs_from_itself_is_not_judged(self):
        noisy = row("a", {BASE: [1.0], NOISE: [1.06], PRODUCT: [2.0]})
        self.assertEqual(noisy.verdict(), "noise, not judged")
        self.assertEqual(verdicts.judged([noisy, steady("b", 1.2)])[0].name, "b")
        self.assertEqual(verdict_of("slowest judged row", [noisy, steady("b", 1.2)]), "met")

    def test_the_mean_is_geometric_and_without_start_up(self):
        rows = [steady("a", 0.5), steady("b", 2.0), steady(StartUp.name, 100)]
        self.assertEqual(verdict_of("geometric mean", rows), "missed")
        self.assertEqual(verdict_of("geometric mean", rows + [steady("c", 1.5)]), "met")

    def test_the_slowest_row_decides(self):
        self.assertEqual(verdict_of("slowest judged row", [steady("a", 3), steady("b", 0.9)]), "missed")

    def test_large_temporaries_need_five_times_the_speed(self):
        self.assertEqual(verdict_of(verdicts.TEMPORARIES_ROW, [steady(verdicts.TEMPORARIES_ROW, 5.01)]), "met")
        self.assertEqual(verdict_of(verdicts.TEMPORARIES_ROW, [steady(verdicts.TEMPORARIES_ROW, 4.9)]), "missed")

    def test_start_up_is_judged_against_no_preload(self):
        def start_up(product):
            return [row(StartUp.name, {BASE: [3.0], NONE: [1.0], PRODUCT: [product]})]
        self.assertEqual(verdict_of("start-up", start_up(1.5)), "met")
        self.assertEqual(verdict_of("start-up", start_up(1.6)), "missed")

    def test_the_largest_program_decides_about_memory_and_rows_do_not(self):
        rows = [steady("p", 1, is_program=True, peaks={PRODUCT: 1090}), steady("row", 1, peaks={PRODUCT: 9000})]
        self.assertEqual(verdict_of("largest peak", rows), "met")
        self.assertEqual(verdict_of("largest peak", rows + [steady("q", 1, is_program=True, peaks={PRODUCT: 1200})]), "missed")

    def test_size_rules_are_judged_on_their_own_rows(self):
        small = row("churn", {BASE: [1.0], NOISE: [1.0], SIZE_RULES: [1.1]})
        large = row(verdicts.PLACED_LARGE_ROW, {BASE: [1.0], NOISE: [1.0], SIZE_RULES: [1.1]}, by_wall=True)
        self.assertEqual(verdict_of("slowest small row", [small, large]), "missed")
        self.assertEqual(verdict_of("placed large", [small, large]), "met")

    def test_an_idle_runtime_is_judged_against_the_allocator_alone(self):
        busy = row("p", {BASE: [1.0], NOISE: [1.0], PRODUCT: [1.0], ACTIVE: [1.0], MODE_OFF: [0.9]}, is_program=True)
        self.assertEqual(verdict_of("runtime active against PGHOT_MODE=off", [busy]), "missed")

    def test_what_was_not_run_is_not_met(self):
        self.assertEqual({target.verdict for target in verdicts.targets([])}, {"not run"})


class Packages(unittest.TestCase):
    def test_every_package_that_is_named_as_missing_is_in_a_list(self):
        listed = {line for path in (BENCH / "packages", BENCH.parent / "packages") for line in path.read_text().splitlines()}
        needed = {package for program in all_programs() for package in program.needs.values()}
        self.assertEqual(needed - listed, set())
        self.assertLessEqual({"libjemalloc2", "libtcmalloc-minimal4", "libmimalloc2.0"}, listed)

    def test_names_of_variants_are_unlike(self):
        names = [variant.name for variant in all_variants("/no/such/library")]
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main()
