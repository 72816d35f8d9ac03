package eval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/internal/lab/draw"
)

// corpus is the material of one connectivity level (CacheNotes, appendix A): every person belongs to as many projects as the level says,
// and each membership has a block of its own.
type corpus struct {
	people      []member
	projects    []project
	memberships []Block // of the first person, then of the second, and so on
}

type member struct {
	Block
	name     string
	projects []int
	values   [][]string // role and department in each
}

type project struct {
	Block
	title, domain, sponsor, year string
}

// newCorpus has corpusBlocks blocks, whatever the level.
func newCorpus(r *draw.Random, level, tokens int) *corpus {
	c := &corpus{people: make([]member, corpusBlocks/(level+2))}
	c.projects = make([]project, corpusBlocks-len(c.people)*(level+1))
	fresh := distinct()
	id := func(kind string, n int) string { return fmt.Sprintf("connectivity-%d-%s-%d", level, kind, n+1) }
	for i := range c.projects {
		p := &c.projects[i]
		p.title = fresh(func() string { return draw.Pick(r, words().Adjectives) + " " + capital(draw.Pick(r, words().Beasts)) })
		p.domain, p.sponsor, p.year = draw.Pick(r, words().Domains), draw.Pick(r, words().Surnames)+" "+draw.Pick(r, words().SponsorKinds),
			strconv.Itoa(1950+r.Below(70))
		statements := []string{
			"The domain of " + p.title + " is " + p.domain + ".", "The sponsor of " + p.title + " is the " + p.sponsor + ".",
			"The project " + p.title + " began in " + p.year + ".", "The project " + draw.Pick(r, words().Goals) + ".",
		}
		p.Block = Block{id("project", i), page(r, tokens, "This page is about the project "+p.title+".", draw.Shuffled(r, statements)...)}
	}
	for i := range c.people {
		p := &c.people[i]
		p.name = fresh(func() string { return person(r) })
		hobby := draw.Permutation[int](r, len(words().Hobbies))
		statements := []string{
			p.name + " is " + strconv.Itoa(20+r.Below(50)) + " years old.",
			"The occupation of " + p.name + " is " + draw.Pick(r, words().Trades) + ".",
			p.name + " lives in " + draw.Pick(r, words().Cities) + ".",
			"The hobbies of " + p.name + " are " + words().Hobbies[hobby[0]] + " and " + words().Hobbies[hobby[1]] + ".",
		}
		p.Block = Block{id("person", i), page(r, tokens, "This page is about "+p.name+".", draw.Shuffled(r, statements)...)}
		p.projects = draw.Permutation[int](r, len(c.projects))[:level]
		for j, at := range p.projects {
			title := c.projects[at].title
			v := []string{draw.Pick(r, words().Roles), draw.Pick(r, words().Departments)}
			p.values = append(p.values, v)
			statements := []string{
				p.name + " is a member of the project " + title + ".", "The role of " + p.name + " in " + title + " is " + v[0] + ".",
				"The department of " + p.name + " in " + title + " is " + v[1] + ".",
			}
			c.memberships = append(c.memberships,
				Block{id("membership", i*level+j), page(r, tokens, "This page is about a membership.", draw.Shuffled(r, statements)...)})
		}
	}
	return c
}

// joins are what is asked of all projects of a person.
var joins = []struct {
	question, lead string
	value          func(*project) string
}{
	{"In which domains are the projects of %s?", "The domains of the projects of %s are", func(p *project) string { return p.domain }},
	{"In which years did the projects of %s begin?", "The projects of %s began in", func(p *project) string { return p.year }},
	{"Who are the sponsors of the projects of %s?", "The sponsors of the projects of %s are", func(p *project) string { return p.sponsor }},
}

// connected asks for the role or the department of a person in a project, which stands in one membership, or for values of all projects of
// a person, for which all memberships and projects of the person are needed. A list is in the order of the memberships as retrieved,
// and has each value once.
func (t *tasks) connected(row *Row, join bool) {
	c, level := t.corpus, t.o.Connectivity
	who := t.r.Below(len(c.people))
	m := &c.people[who]
	own := c.memberships[who*level:][:level]
	needed := []Block{}
	link := t.r.Below(level)
	if join {
		needed = append(needed, own...)
		for _, at := range m.projects {
			needed = append(needed, c.projects[at].Block)
		}
	} else {
		needed = append(needed, own[link])
	}
	row.Blocks = t.retrieve(needed)
	for _, b := range row.Blocks {
		if slices.Contains(needed, b) {
			row.Gold = append(row.Gold, b.ID)
		}
	}
	if !join {
		kind := t.r.Below(2)
		of := []string{"role", "department"}[kind] + " of " + m.name + " in " + c.projects[m.projects[link]].title
		row.Question, row.Lead, row.Answers = "What is the "+of+"?", "The "+of+" is", []string{m.values[link][kind]}
		return
	}
	j := &joins[t.r.Below(len(joins))]
	var list []string
	for _, b := range row.Blocks {
		if i := slices.Index(own, b); i >= 0 {
			if v := j.value(&c.projects[m.projects[i]]); !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
	}
	row.Question, row.Lead = fmt.Sprintf(j.question, m.name)+listed, fmt.Sprintf(j.lead, m.name)
	row.Answers = []string{strings.Join(list, ", ")}
}

// retrieve puts needed blocks at places that are drawn, and any other blocks of the corpus at the rest.
func (t *tasks) retrieve(needed []Block) []Block {
	blocks := make([]Block, t.o.K)
	order := draw.Permutation[int](t.r, len(needed))
	for i, at := range t.ranks(len(needed)) {
		blocks[at] = needed[order[i]]
	}
	all := t.corpus.blocks()
	next := draw.Permutation[int](t.r, len(all))
	for i := range blocks {
		for blocks[i].ID == "" {
			if b := all[next[0]]; !slices.Contains(needed, b) {
				blocks[i] = b
			}
			next = next[1:]
		}
	}
	return blocks
}

func (c *corpus) blocks() (all []Block) {
	for i := range c.people {
		all = append(all, c.people[i].Block)
	}
	for i := range c.projects {
		all = append(all, c.projects[i].Block)
	}
	return append(all, c.memberships...)
}
