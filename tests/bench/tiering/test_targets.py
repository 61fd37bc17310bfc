# SPDX-License-Identifier: Apache-2.0
"""From what runs say to figures, medians and verdicts, on runs made up here."""
import unittest

import tables
import targets
from figures import Figures, busy_part, merged, slope
from results import Results, median, ratio
from runs import Run
from workload_list import LIBPGHOT, NUMAB0, NUMAB2, WORKLOADS

COSTS = dict.fromkeys(("samples_us", "page_moves_us", "moving_calls_us", "hint_faults_us", "pte_updates_us"), 0)


def phase(name, modelled_s, wall_s, cost_us=0):
    return {"name": name, "wall_us": wall_s * 1e6, "modelled_us": modelled_s * 1e6, "modelled": COSTS | {"page_moves_us": cost_us}}


def watched(name, local_us=1e6, local=256, moved=(0, 256, 0, 0), twice=0):
    return {"name": name, "pages": 256, "local_pages": local, "local_us": local_us, "moved_pages": list(moved),
            "promoted_twice": twice}


def bench(modelled_s=1.0, wall_s=1.0, phases=(), sets=(), vmstat=None, changed=0, checksum=7):
    return {"modelled_us": modelled_s * 1e6, "wall_us": wall_s * 1e6, "checksum": checksum, "phases": list(phases),
            "sets": list(sets), "vmstat": vmstat or {}, "pages_changed": changed, "pages_per_node": {"0": 1, "2": 3}}


def figures(reports=(), moves=(), hot=("hot",), **more):
    return Figures(Run(bench(**more), [{"counters": counters} for counters in reports], list(moves)), hot)


def results_of(rows):
    """(workload, configuration, figures) rows."""
    results = Results()
    for row in rows:
        results.add(*row)
    return results


def verdict(what, results):
    return targets.judge(next(target for target in targets.TARGETS if target.what.startswith(what)), results)


def two(workload, kernel, ours):
    return results_of([(workload, NUMAB2.name, kernel), (workload, LIBPGHOT.name, ours)])


class FiguresOfARun(unittest.TestCase):
    def test_pages_moved_by_the_kernel_and_by_the_library_add_up(self):
        both = figures(vmstat={"pgpromote_success": 10, "pgdemote_kswapd": 1, "pgdemote_direct": 2, "pgmigrate_success": 150},
                       reports=[{"pgpromote_success": 100, "pgdemote_success": 30}], changed=140)
        self.assertEqual((both.up, both.down, both.moved, both.repeated), (110, 33, 150, 10))

    def test_more_pages_changed_than_moves_is_no_negative_repetition(self):
        self.assertEqual(figures(vmstat={"pgmigrate_success": 5}, changed=9).repeated, 0)

    def test_counters_of_all_processes_add_up_and_one_that_is_missing_is_unknown(self):
        self.assertEqual(figures(reports=[{"promotions_paid": 3}, {"promotions_paid": 4}]).useful, 7)
        self.assertIsNone(figures(reports=[{"promotions_paid": 3}, {}]).useful)
        self.assertIsNone(figures().useful)

    def test_the_slowest_hot_set_counts_and_one_that_never_was_local_is_never(self):
        sets = (watched("a", 1e6), watched("b", 3e6))
        self.assertEqual(figures(sets=sets, hot=("a", "b")).local_s, 3.0)
        self.assertEqual(figures(sets=(watched("a", None),), hot=("a",)).local_s, float("inf"))
        self.assertIsNone(figures(sets=sets, hot=("c",)).local_s)

    def test_costs_of_tiering_are_held_against_the_clock(self):
        some = figures(phases=(phase("compute", 0.1, 2.0, cost_us=20e3), phase("stream", 1.0, 1.0, cost_us=5e5)))
        self.assertAlmostEqual(some.tiering_share("compute"), 0.01)
        self.assertIsNone(some.tiering_share("decode"))


class Ranks(unittest.TestCase):
    def test_times_are_the_longest_and_pages_add_up(self):
        job = merged([bench(modelled_s=1.0, wall_s=2.0, sets=(watched("hot", 1e6),), changed=3, vmstat={"pgpromote_success": 5}),
                      bench(modelled_s=1.5, wall_s=1.0, sets=(watched("hot", 2e6, local=6),), changed=4,
                            vmstat={"pgpromote_success": 2})])
        self.assertEqual((job["wall_us"], job["modelled_us"], job["pages_changed"]), (2e6, 1.5e6, 7))
        self.assertEqual(job["pages_per_node"], {"0": 2, "2": 6})
        self.assertEqual(job["vmstat"], {"pgpromote_success": 5})
        self.assertEqual((job["sets"][0]["local_us"], job["sets"][0]["local_pages"], job["sets"][0]["pages"]), (2e6, 262, 512))

    def test_a_set_is_local_when_it_is_in_every_rank(self):
        job = merged([bench(sets=(watched("hot", None),)), bench(sets=(watched("hot", 1e6),))])
        self.assertIsNone(job["sets"][0]["local_us"])


class Rates(unittest.TestCase):
    def test_the_rate_is_the_line_through_the_points_while_pages_moved(self):
        # Nothing for 2 s, 4096 pages a second for 12 s, in steps of 512; nothing for 2 s.
        points = [(t / 4, min(max(t - 8, 0), 48) * 1024 // 512 * 512) for t in range(64)]
        run = figures(moves=points)
        self.assertAlmostEqual(run.move_rate_mib, 16.0, delta=0.05)
        self.assertAlmostEqual(run.busy_seconds, 10.75, delta=0.5)

    def test_edges_are_left_out(self):
        self.assertEqual(busy_part([(0, 0), (1, 0), (2, 5), (3, 9), (4, 9)], margin=0), [(2, 5)])
        self.assertEqual(busy_part([(0, 7), (1, 7)]), [])

    def test_one_point_has_no_slope(self):
        self.assertIsNone(slope([(0, 1)]))
        self.assertEqual(slope([(0, 1), (2, 5)]), 2)

    def test_a_budget_is_judged_only_when_there_was_work_long_enough(self):
        def at(rate, seconds):
            points = [(t / 4, t / 4 * rate * 256) for t in range(int(seconds * 4) + 6)]
            return results_of([("budget-1", LIBPGHOT.name, figures(moves=points))])

        self.assertEqual(verdict("budget-1", at(16.2, 12)).verdict, "met")
        self.assertTrue(verdict("budget-1", at(16.5, 12)).verdict.startswith("missed"))
        self.assertTrue(verdict("budget-1", at(15.5, 12)).verdict.startswith("missed"))
        self.assertEqual(verdict("budget-1", at(16.2, 8)).verdict, "not run")


class Medians(unittest.TestCase):
    def test_what_is_missing_is_left_out(self):
        self.assertEqual(median([3, None, 1, 2]), 2)
        self.assertIsNone(median([None]))

    def test_nothing_is_divided_by_nothing(self):
        self.assertIsNone(ratio(1, 0))
        self.assertIsNone(ratio(1, None))
        self.assertEqual(ratio(0, 2), 0)

    def test_medians_are_compared_not_single_rounds(self):
        results = Results()
        for kernel, ours in ((1.3, 1.0), (9.0, 1.0), (1.3, 9.0)):
            results.add("uniform-128", NUMAB2.name, figures(modelled_s=kernel))
            results.add("uniform-128", LIBPGHOT.name, figures(modelled_s=ours))
        self.assertEqual(verdict("uniform-128: against", results).value, "1.300")

    def test_results_that_differ_are_seen(self):
        self.assertIsNone(two("a", figures(), figures()).disagreement("a"))
        self.assertEqual(two("a", figures(checksum=1), figures(checksum=2)).disagreement("a"), {1, 2})


class Verdicts(unittest.TestCase):
    def test_the_limit_itself_is_met_on_both_sides(self):
        self.assertEqual(verdict("uniform-128: against", two("uniform-128", figures(modelled_s=1.3), figures())).verdict, "met")
        missed = verdict("uniform-128: against", two("uniform-128", figures(modelled_s=1.17), figures()))
        self.assertEqual((missed.value, missed.verdict), ("1.170", "missed by 10.0%"))
        half = two("graph", figures(vmstat={"pgmigrate_success": 100}), figures(vmstat={"pgmigrate_success": 50}))
        self.assertEqual(verdict("graph: pages", half).verdict, "met")
        more = two("graph", figures(vmstat={"pgmigrate_success": 100}), figures(vmstat={"pgmigrate_success": 60}))
        self.assertEqual(verdict("graph: pages", more).verdict, "missed by 20.0%")

    def test_a_limit_of_nothing_is_missed_by_a_count(self):
        once = figures(sets=(watched("shared", moved=(0, 200, 56, 0)),))
        self.assertEqual(verdict("two-groups: watched", two("two-groups", figures(), once)).verdict, "met")
        often = figures(sets=(watched("shared", moved=(0, 200, 53, 3)),))
        self.assertEqual(verdict("two-groups: watched", two("two-groups", figures(), often)).verdict, "missed by 3")

    def test_the_worse_of_two_groups_counts(self):
        run = figures(sets=(watched("private 0"), watched("private 1", local=240)))
        self.assertEqual(verdict("two-groups: private", two("two-groups", figures(), run)).value, "93.75%")

    def test_a_kernel_that_was_never_local_took_the_run_at_least(self):
        never = figures(wall_s=4.0, sets=(watched("hot", None),))
        quick, slow = (figures(sets=(watched("hot", time),)) for time in (2e6, 3e6))
        self.assertEqual(verdict("uniform-128: until", two("uniform-128", never, quick)).verdict, "met")
        self.assertEqual(verdict("uniform-128: until", two("uniform-128", never, slow)).verdict, "missed by 50.0%")

    def test_never_local_is_missed(self):
        never = figures(sets=(watched("hot", None),))
        self.assertTrue(verdict("uniform-128: until", two("uniform-128", figures(sets=(watched("hot"),)), never))
                        .verdict.startswith("missed"))

    def test_one_slow_repetition_of_decode_misses(self):
        def run(times):
            return figures(phases=[phase(f"decode {i}", time, time) for i, time in enumerate(times, 1)])

        self.assertEqual(verdict("inference: decode", two("inference", run([2] * 5), run([2, 1, 1, 1, 1]))).verdict, "met")
        self.assertEqual(verdict("inference: decode", two("inference", run([2] * 5), run([1, 1, 1, 1, 4]))).value, "0.500")

    def test_without_runs_nothing_is_judged(self):
        self.assertEqual({each.verdict for each in targets.verdicts(Results())}, {"not run"})

    def test_every_target_is_about_a_workload_and_its_configurations(self):
        """With all workloads run in all their configurations, every target has a value."""
        results = Results()
        names = {workload.name for workload in WORKLOADS}
        for workload in WORKLOADS:
            sets = [watched(name) for name in ("hot", "shared", *workload.hot_sets)]
            phases = [phase(name, 1, 1) for name in ("stream", "compute", *(f"{kind} {i}" for kind in ("prefill", "decode")
                                                                          for i in range(1, targets.REPETITIONS + 1)))]
            for configuration in workload.configurations:
                results.add(workload.name, configuration.name, figures(
                    sets=sets, phases=phases, vmstat={"pgmigrate_success": 10}, changed=10, hot=workload.hot_sets,
                    moves=[(t / 4, t * 1024) for t in range(80)]))
        for target in targets.TARGETS:
            with self.subTest(target.what):
                self.assertIsNotNone(target.value(results))
                self.assertIn(target.what.split(":")[0], names)


class Tables(unittest.TestCase):
    def test_never_is_a_word_and_nothing_is_a_dash(self):
        self.assertEqual(tables.spread([1.0, float("inf"), 2.0]), "2.00 (1.00-never)")
        self.assertEqual(tables.spread([None]), "-")
        self.assertEqual(tables.number(None), "-")

    def test_columns_line_up(self):
        self.assertEqual(tables.aligned([("a", "b"), ("long name", "1.00")]), ["a             b", "long name  1.00"])

    def test_a_table_has_a_row_a_configuration_and_ratios_to_no_promotion(self):
        workload = WORKLOADS[0]
        results = results_of([(workload.name, NUMAB0.name, figures(modelled_s=5.0)), (workload.name, LIBPGHOT.name, figures())])
        rows = tables.workload_rows(workload, results)
        self.assertEqual([(row[0], row[-1]) for row in rows[1:]], [("NUMAB0", "1.00"), ("libpghot", "5.00")])

    def test_the_pace_is_that_of_the_run_without_promotion(self):
        results = results_of([("uniform-128", NUMAB0.name, figures(modelled_s=5.0, wall_s=6.0)),
                              ("uniform-128", LIBPGHOT.name, figures(wall_s=9.0))])
        self.assertAlmostEqual(tables.pace(WORKLOADS[0], results), 1.2)


if __name__ == "__main__":
    unittest.main()
