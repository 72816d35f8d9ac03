#!/usr/bin/env python3
"""A lower bound of what any plan of a small table computes: bound.py TABLE.csv. Needs numpy, scipy and highspy.

Prompts are "column: cell" lines, so two prompts share a number of whole lines and the beginning of the next one. Choosing an order of
columns for each row is then an integer program over the trie of all prompts that are possible:

  x[r, P]   row r begins with the columns P, in this order; P is followed as long as another row has the same cells in these columns
  y[edge]   an edge of the trie, of so many characters, that several rows may share, is computed
  sum over c of x[r, P + c] = x[r, P]                        (1 at the root)
  sum of x[r, P + c] whose line goes through the edge <= y[edge]   (for each row)
  least sum of the characters of edges, and of what each row has alone

Without "x is 0 or 1" it is a linear program, whose value no plan is below. It grows with the number of columns like their permutations:
five columns and 1,000 rows are 80,000 variables, and take half a minute.
"""
import collections
import csv
import sys

import highspy
import numpy
import scipy.sparse

with open(sys.argv[1], encoding="utf-8", newline="") as file:
    head, *rows = csv.reader(file)
lines = [[f"{name}: {cell}\n" for name, cell in zip(head, row)] for row in rows]
total = sum(len(line) for row in lines for line in row)
lines = [list(row) for row in dict.fromkeys(map(tuple, lines))]  # equal rows are one request
if any(line.count("\n") != 1 for row in lines for line in row):
    sys.exit("a cell has a line feed: prompts could share other parts than lines")

cost = []  # by variable
constraints = []  # terms, least, most


def variable(c=0):
    cost.append(c)
    return len(cost) - 1


def trie(place, begin, end, depth):
    """Makes the edges below a node. place is sorted, its lines from begin to end have the first depth characters in common."""
    while begin < end:
        last = begin
        while last < end and place[last][0][depth] == place[begin][0][depth]:
            last += 1
        part = place[begin:last]
        if len({row for _, row, _, _ in part}) == 1:
            for line, _, _, x in part:
                cost[x] += len(line) - depth
        else:
            first, final, below = part[0][0], part[-1][0], depth + 1
            while below < min(len(first), len(final)) and first[below] == final[below]:
                below += 1
            y, through = variable(below - depth), collections.defaultdict(list)
            for _, row, _, x in part:
                through[row].append((x, 1))
            for terms in through.values():
                constraints.append((terms + [(y, -1)], -highspy.kHighsInf, 0))
            if first != final:
                trie(place, begin, last, below)
        begin = last


def node(columns, members, above):
    """Makes the variables of the rows that may begin with these columns. above: their variables; at the root None."""
    left = [c for c in range(len(head)) if c not in columns]
    if not left:
        return
    place = []
    for row in members:
        mine = [(variable(), c) for c in left]
        place += [(lines[row][c], row, c, x) for x, c in mine]
        terms = [(x, 1) for x, _ in mine]
        constraints.append((terms, 1, 1) if above is None else (terms + [(above[row], -1)], 0, 0))
    place.sort()
    trie(place, 0, len(place), 0)
    groups = collections.defaultdict(dict)
    for line, row, c, x in place:
        groups[c, line][row] = x
    for (c, _), group in groups.items():
        if len(group) > 1:
            node(columns + [c], list(group), group)
            continue
        for row, x in group.items():
            cost[x] += sum(len(lines[row][k]) for k in left if k != c)


node([], range(len(lines)), None)
at = [(i, x, a) for i, (terms, _, _) in enumerate(constraints) for x, a in terms]
r, c, v = zip(*at)
matrix = scipy.sparse.csr_matrix((v, (r, c)), shape=(len(constraints), len(cost)), dtype=float)
lp = highspy.HighsLp()
lp.num_col_, lp.num_row_ = len(cost), len(constraints)
lp.col_cost_ = numpy.array(cost, dtype=float)
lp.col_lower_, lp.col_upper_ = numpy.zeros(len(cost)), numpy.ones(len(cost))
lp.row_lower_ = numpy.array([least for _, least, _ in constraints], dtype=float)
lp.row_upper_ = numpy.array([most for _, _, most in constraints], dtype=float)
lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
solver = highspy.Highs()
solver.setOptionValue("output_flag", False)
solver.setOptionValue("solver", "ipm")
solver.setOptionValue("run_crossover", "off")
solver.passModel(lp)
solver.run()
least = solver.getInfo().objective_function_value
print(f"{len(cost)} variables, {len(constraints)} constraints, {solver.modelStatusToString(solver.getModelStatus())}")
print(f"no plan computes less than {least:.1f} of {total} characters, or saves more than {1 - least / total:.4f}")
