package statement

import (
	_ "embed"
	"strings"
)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[strings.ReplaceAll(w, "_", " ")] = true
	}
	return out
}

// English words that decide by where they stand in a sentence.
var (
	// leading words say nothing about the sentence behind them.
	leading = set(`and but so also ok okay well then now hi hello hey oh um uh hmm btw actually yes yeah yep no nope alright great
		cool please pls sorry thanks right sure anyway by_the_way first next finally just or quick_question one_more_thing`)
	wh = set(`what where when why who whom whose which how what's where's when's why's who's how's whats wheres whens whos hows
		what're where're who're how're what'd where'd who'd how'd what'll who'll where'll`)
	auxiliary = set(`am is are was were do does did can could will would shall should have has had may might must isn't aren't wasn't
		weren't don't doesn't didn't can't couldn't won't wouldn't shouldn't haven't hasn't hadn't`)
	pronoun = set(`i you he she it we they there anyone anybody someone somebody anything something everyone everything`)
	// determiner may begin a subject.
	determiner = set(`the my your our his her its their this that these those any`)
	// degree stands between how and its auxiliary.
	degree = set(`many much long often old far big tall high deep large late early soon fast heavy expensive likely come`)
	// task is a verb that orders something to be done, whatever follows it.
	task = set(`summarise summarize translate explain describe rewrite rephrase paraphrase proofread recommend suggest generate elaborate
		compare calculate brainstorm classify analyze analyse refactor debug continue`)
	// order is a verb that orders something to be done if an object follows it.
	order = set(`tell give show help find write list make create read check fix look search remind get compose sort convert draft
		outline define compute name propose provide review correct improve shorten expand edit format solve repeat run send
		set turn plan cancel book open play add remove delete replace change order try`)
	object = set(`me us this that these those it them the a an my your our some all any how why what where when which who
		between at into two three five ten`)
)

// indirect begins a question or a request that does not look like one.
var indirect = []string{
	"i wonder", "i was wondering", "i am wondering", "i'm wondering", "i'd like to know", "i would like to know",
	"i want to know", "i need to know", "i'd like you to", "i would like you to", "i want you to", "i need you to",
	"do you know", "any idea", "any ideas", "how about", "what about", "how come", "why not", "let me know", "let's see",
	"could you", "can you", "would you", "will you", "can u", "could u", "would it", "may i", "i'd like to ask",
	"i have a question", "i've a question", "i need help", "i need your help", "search for", "look for", "look up",
	"check for", "answer this", "answer my", "help with", "plan for me", "try again", "more details", "more about",
	"more examples", "more on", "another one", "one more", "what else", "tell me", "show me", "give me", "remind me what",
	"remind me when", "remind me where", "remind me who", "remind me which", "remind me how", "remind me why", "remind me of",
}

// keepsake begins what is said to be remembered, whatever form it has.
var keepsake = []string{
	"remember that", "remember:", "remember, ", "remember i", "remember my", "remember this:", "remember we", "remember to",
	"please remember", "note:", "note that", "note, ", "please note", "notes:", "nb:", "n.b.", "ps:", "p.s.", "fyi",
	"for the record", "for your information", "keep in mind", "bear in mind", "don't forget", "do not forget",
	"remind me that", "remind me to", "make a note", "take note", "save this", "store this", "write down that", "todo:",
	"to do:", "reminder:", "update:", "correction:", "fact:", "important:",
}

// entrusts stands in a request that is a statement all the same.
var entrusts = []string{
	"remember that", "note that", "make a note that", "keep in mind that", "write down that", "save that", "store that",
	"remind me that", "remind me to", "remember:", "note:", "remember this:", "note down:", "note down that",
}

//go:embed chatter.txt
var chatterText string

// chatter are phrases that say nothing by themselves. A sentence of nothing else is dropped.
var chatter = func() map[string]bool {
	out := map[string]bool{}
	for phrase := range strings.FieldsFuncSeq(chatterText, func(r rune) bool { return r == '|' || r == '\n' }) {
		out[phrase] = true
	}
	return out
}()

// filler may stand among chatter: "that was very helpful, thank you so much".
var filler = set(`then so very much a lot and too again all everyone everybody guys folks team there now that it
		you for_your_help for_the_help that was is this sounds looks seems to_me with_me by_me answer idea explanation help just pretty quite an
	for_the_info for_that for_now for_today for_everything for_your_time for_the_explanation for_explaining for_helping really oh ah ok today`)

// greeted are the first words behind which a name may stand.
var greeted = set(`hi hello hey thanks bye goodbye hola bonjour salut hallo ciao merci danke gracias grazie olá oi hej`)
