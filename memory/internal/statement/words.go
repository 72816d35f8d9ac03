package statement

import "strings"

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
	"i wonder", "i was wondering", "i am wondering", "i'm wondering", "i'd like to know", "i would like to know", "i want to know",
	"i need to know", "i'd like you to", "i would like you to", "i want you to", "i need you to", "do you know", "any idea", "any ideas",
	"how about", "what about", "how come", "why not", "let me know", "let's see", "could you", "can you", "would you", "will you", "can u",
	"could u", "would it", "may i", "i'd like to ask", "i have a question", "i've a question", "i need help", "i need your help",
	"search for", "look for", "look up", "check for", "answer this", "answer my", "help with", "plan for me", "try again", "more details", "more about", "more examples", "more on", "another one", "one more", "what else", "tell me", "show me", "give me", "remind me what", "remind me when", "remind me where", "remind me who",
	"remind me which", "remind me how", "remind me why", "remind me of",
}

// keepsake begins what is said to be remembered, whatever form it has.
var keepsake = []string{
	"remember that", "remember:", "remember, ", "remember i", "remember my", "remember this:", "remember we", "remember to", "please remember",
	"note:", "note that", "note, ", "please note", "notes:", "nb:", "n.b.", "ps:", "p.s.", "fyi", "for the record", "for your information", "keep in mind",
	"bear in mind", "don't forget", "do not forget", "remind me that", "remind me to", "make a note", "take note", "save this", "store this",
	"write down that", "todo:", "to do:", "reminder:", "update:", "correction:", "fact:", "important:",
}

// entrusts stands in a request that is a statement all the same.
var entrusts = []string{
	"remember that", "note that", "make a note that", "keep in mind that", "write down that", "save that", "store that", "remind me that", "remind me to",
	"remember:", "note:", "remember this:", "note down:", "note down that",
}

// chatter are phrases that say nothing by themselves. A sentence of nothing else is dropped.
var chatter = func() map[string]bool {
	out := map[string]bool{}
	for line := range strings.SplitSeq(`
hi|hello|hey|hey there|hi there|hello there|howdy|yo|greetings|good morning|good afternoon|good evening|good night|good day|morning|evening
hi again|hello again|nice to meet you|pleased to meet you|nice to see you|welcome back|i'm back|long time no see
bye|goodbye|bye bye|see you|see you later|see you soon|see you tomorrow|see you then|see you there|see you around|see you next time|see you next week|see you next month|see you on monday|see you on tuesday|see you on wednesday|see you on thursday|see you on friday|see you on saturday|see you on sunday|see ya|take care|talk to you later|talk later|talk soon|ttyl|cheers
have a nice day|have a good day|have a great day|have a nice evening|have a good evening|have a good one|have a nice weekend|have a great weekend|good luck
thanks|thank you|thanks a lot|thanks so much|thanks a bunch|thanks a million|thank you so much|thank you very much|many thanks|thx|ty|much appreciated|i appreciate it|i appreciate that|appreciate it|thanks again|thank you again|thanks anyway|thanks in advance|thank you in advance|thank you all|thanks all
ok|okay|k|kk|okey|okay then|ok then|alright|alright then|all right|right|fine|that's fine|sure|sure thing|of course|certainly|absolutely|definitely|exactly|indeed|correct|true|agreed|i agree|yes|yeah|yep|yup|yes please|no|nope|nah|no thanks|no thank you|not really|maybe|perhaps|please|please do|go ahead|go on|continue|please continue|carry on|next|done|stop|wait|one moment|just a moment|hold on|one sec|same here|me too
i see|i understand|understood|got it|gotcha|makes sense|that makes sense|good to know|noted|roger|will do|fair enough|i get it|now i see|now i understand|i think so|i guess|i guess so|i hope so|i don't know|i don't know yet|no idea|not sure|i'm not sure|let me think|let me see|hmm|hm|mm|mhm|uh huh|um|uh|oh|ah|aha|oh no|oh well|oh i see|ah i see|well
great|helpful|useful|clear|great job|nice|nice one|cool|awesome|amazing|perfect|wonderful|excellent|fantastic|brilliant|lovely|super|good|good job|good point|good idea|great idea|good question|well done|not bad|very good|very nice|very helpful|that's great|that's good|that's nice|that's cool|that's perfect|that's helpful|that's interesting|that's right|that's correct|that's all|that's it|that is all|that works|that helps|that's wrong|that's not right|it works|it worked|works for me|sounds good|sounds great|looks good|looks great|interesting|how interesting|impressive|wow|whoa|yay|haha|hahaha|ha|hehe|lol|oops|ouch|omg|sigh|never mind|nevermind|no problem|no worries|you're welcome|you are welcome|my pleasure|don't worry|sorry|i'm sorry|sorry about that|my bad|excuse me|pardon|pardon me|i love it|love it|congratulations|congrats|happy birthday|merry christmas|happy new year
how are you|how are you doing|how's it going|how is it going|what's up|whats up|sup
hola|buenos días|buenos dias|buenas tardes|buenas noches|buenas|gracias|muchas gracias|mil gracias|vale|claro que sí|por supuesto|con gusto|vale|de acuerdo|claro|por favor|de nada|adiós|adios|hasta luego|hasta mañana|sí|si|entiendo|perfecto|genial|muy bien
bonjour|bonsoir|salut|coucou|merci|merci beaucoup|merci bien|d'accord|oui|non|avec plaisir|s'il vous plaît|s'il te plaît|au revoir|à bientôt|à demain|bonne journée|bonne soirée|bonne nuit|parfait|très bien|super|je vois|je comprends|de rien|bien sûr
hallo|guten tag|guten morgen|guten abend|gute nacht|moin|servus|grüß gott|danke|danke schön|dankeschön|vielen dank|danke sehr|besten dank|bitte|bitte schön|tschüss|tschüß|auf wiedersehen|bis bald|bis morgen|bis später|ja|nein|alles klar|gern|gerne|sehr gerne|natürlich|ach so|verstehe|ich verstehe|verstanden|in ordnung|genau|gut|sehr gut|prima|schönen tag noch|schönen abend noch|klar|na gut
ciao|buongiorno|buonasera|buonanotte|salve|grazie|grazie mille|molte grazie|prego|arrivederci|a presto|a domani|sì|va bene|volentieri|capito|ho capito|perfetto|certo|benissimo
olá|ola|oi|bom dia|boa tarde|boa noite|obrigado|obrigada|muito obrigado|muito obrigada|valeu|tchau|até logo|até amanhã|sim|não|tudo bem|com certeza|entendi|perfeito|beleza|de acordo
hoi|goedemorgen|goedemiddag|goedenavond|dag|dank je|dank u|dankjewel|bedankt|tot ziens|doei|oké|prima|hej|hejsan|god morgon|tack|tack så mycket|hej då|hei|hei hei|god morgen|takk|tusen takk|tak|mange tak|farvel|moi|kiitos|hyvää päivää
cześć|dzień dobry|dobry wieczór|dziękuję|dzięki|do widzenia|tak|nie|dobrze|ahoj|dobrý den|děkuji|díky|merhaba|selam|günaydın|teşekkürler|teşekkür ederim|tamam|evet|hayır|bună|mulțumesc|szia|köszönöm
привет|здравствуйте|здравствуй|добрый день|доброе утро|добрый вечер|спасибо|большое спасибо|спасибо большое|пожалуйста|пока|до свидания|да|нет|хорошо|понятно|ладно|ясно|понял|поняла|дякую|привіт|добрий день
γεια|γεια σου|γεια σας|καλημέρα|καλησπέρα|ευχαριστώ|ναι|όχι|εντάξει|שלום|תודה|תודה רבה|مرحبا|السلام عليكم|شكرا|شكرا لك|شكرا جزيلا|نعم|لا|حسنا|سلام|ممنون|नमस्ते|धन्यवाद|शुक्रिया|हाँ|ठीक है|হ্যালো|ধন্যবাদ
你好|您好|嗨|早上好|晚上好|谢谢|谢谢你|謝謝|多谢|好的|好|嗯|是的|明白了|明白|知道了|再见|こんにちは|こんばんは|おはよう|おはようございます|ありがとう|ありがとうございます|どうも|はい|いいえ|わかりました|なるほど|さようなら|안녕하세요|안녕|감사합니다|고마워요|고마워|네|아니요|알겠습니다|xin chào|cảm ơn|halo|terima kasih|selamat pagi|asante|habari`, "\n") {
		for phrase := range strings.SplitSeq(strings.TrimSpace(line), "|") {
			out[phrase] = true
		}
	}
	return out
}()

// filler may stand among chatter: "that was very helpful, thank you so much".
var filler = set(`then so very much a lot and too again all everyone everybody guys folks team there now that it you for_your_help for_the_help that was is this sounds looks seems to_me with_me by_me answer idea explanation help just pretty quite an
	for_the_info for_that for_now for_today for_everything for_your_time for_the_explanation for_explaining for_helping really oh ah ok today`)

// greeted are the first words behind which a name may stand.
var greeted = set(`hi hello hey thanks bye goodbye hola bonjour salut hallo ciao merci danke gracias grazie olá oi hej`)
