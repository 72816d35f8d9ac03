package membench

// likingPatterns are preferences: how somebody wants things to be.
var likingPatterns = []pattern{
	{
		"answer-style", "preference", "Please keep your replies {v}.", "I have changed my mind: keep your replies {v}.",
		"short|free of jargon|in bullet points|formal|with a joke at the end",
		"In what style do I want to be answered?|How should replies to me be?",
	},
	{
		"units", "preference", "I think in {v}.", "",
		"miles and pounds|kilometres and kilograms|Fahrenheit and feet|nautical miles",
		"Which system of measurement do I prefer?|What units do I think in?",
	},
	{
		"seat", "preference", "In a plane I sit {v}.", "I have come to sit {v} in a plane.",
		"by the window|on the aisle|in the front row|over the wing|in the last row",
		"What should you reserve for me when booking a flight?|Where do I sit in a plane?",
	},
	{
		"music", "preference", "While coding I listen to {v}.", "I have grown tired of that, while coding I listen to {v}.",
		"baroque lute|drum and bass|Malian blues|film scores|techno|Gregorian chant",
		"What sounds play in my headphones as I program?|What do I listen to while coding?",
	},
	{
		"colour", "preference", "My favourite colour is {v}.", "",
		"teal|burgundy|mustard yellow|olive green|lavender|cobalt blue",
		"Which shade do I like best?|What is my favourite colour?",
	},
	{
		"author", "preference", "I have read everything by {v}.", "",
		"Ursula Le Guin|Italo Calvino|Toni Morrison|Stanislaw Lem|Halldor Laxness|Clarice Lispector",
		"Who is my favourite novelist?|Whose next novel will I surely buy?|Whose books have I all read?",
	},
	{
		"film", "preference", "I have watched {v} at least ten times.", "",
		"Amelie|Alien|The Apartment|Spirited Away|Paris, Texas|Some Like It Hot",
		"Which movie never bores me?|What have I watched ten times?",
	},
	{
		"call-me", "preference", "Please address me as {v}.", "Do not do that any more, address me as {v}.",
		"Doctor|Captain|Lou|Max|Professor|Robin",
		"What name should you call me by?|How shall you address me?",
	},
	{
		"hotel-floor", "preference", "I only sleep in hotel rooms {v}.", "",
		"above the fifth floor|facing the courtyard|without carpets|away from the lift|with a bathtub",
		"What matters to me when you book a place to stay overnight?|Which hotel rooms do I sleep in?",
	},
	{
		"news", "preference", "I get my news from {v}.", "I cancelled that and get my news from {v}.",
		"the radio|a weekly magazine|three podcasts|the evening paper|a blog of a friend",
		"How do I keep up with current events?|Where do I get my news?",
	},
	{
		"dress", "preference", "I wear {v} to any party.", "",
		"a green velvet jacket|a red bow tie|cowboy boots|a silk scarf|my grandfather's hat",
		"What is my usual outfit when I am invited somewhere?|What do I wear to a party?",
	},
	{
		"temperature", "preference", "I like my bedroom at {v} degrees.", "I have set my bedroom to {v} degrees for good.", "16|17|18|19|20|21",
		"How warm should it be where I rest at night?|At how many degrees do I like my bedroom?",
	},
	{
		"editor", "preference", "I write all my code in {v}.", "I switched and write my code in {v} now.", "Emacs|Vim|Helix|Kakoune|Zed|Sublime Text",
		"Which program do I do my programming with?|What do I write my code in?",
	},
}

// leisurePatterns are about hobbies.
var leisurePatterns = []pattern{
	{
		"instrument", "leisure", "I have been learning {v} for a year.", "I gave it up and have been learning {v} since spring.",
		"the cello|the banjo|the accordion|the oboe|the sitar|the harp",
		"Which musical instrument do I practise?|What have I been learning?",
	},
	{
		"club", "leisure", "I row with {v}.", "", "the Otters|the Swan Club|the Harbour Eight|the Night Herons",
		"Which boat crew am I a member of?|Who do I row with?",
	},
	{
		"collection", "leisure", "I collect {v}.", "", "enamel signs|fountain pens|matchboxes|old maps|tin robots|sea glass",
		"What fills the display cabinets of my hobby?|What do I collect?",
	},
	{
		"garden", "leisure", "This year I grow {v} on the allotment.", "The slugs got those, so I grow {v} on the allotment.",
		"kohlrabi|tomatoes|giant pumpkins|artichokes|sweet peas|strawberries",
		"What have I planted in my garden?|What do I grow on the allotment?",
	},
	{
		"chess", "leisure", "My rating at chess is {v}.", "After the tournament my rating at chess is {v}.", "1180|1320|1455|1510|1690|1820",
		"How strong a player am I over the board?|What is my chess rating?",
	},
	{
		"choir", "leisure", "I sing {v} in the choir.", "The conductor made me sing {v} in the choir.", "alto|tenor|bass|soprano|baritone",
		"Which voice part do I have?|What do I sing in the choir?",
	},
	{
		"team", "leisure", "I have supported {v} all my life.", "", "Ajax|Celtic|Union Berlin|Athletic Bilbao|Torino|Rapid Vienna",
		"Which football team am I a fan of?|Who have I supported all my life?",
	},
	{
		"bookclub", "leisure", "Our reading circle meets at {v}'s place.", "The reading circle has gone to {v}'s place.", names,
		"Who hosts the book club?|Where does the reading circle meet?",
	},
	{
		"camera", "leisure", "I take pictures with {v}.", "That one broke, I take pictures with {v}.",
		"an old Leica|a Pentax K1000|a Fuji X100|a pinhole box|a Hasselblad|a Nikon Z6",
		"Which camera is mine?|What do I take pictures with?",
	},
	{
		"knitting", "leisure", "I am knitting {v} for {name}.", "I unravelled that and am knitting {v} for {name}.",
		"a striped scarf|mittens|a cardigan|a baby blanket|thick socks",
		"What am I making out of wool?|What am I knitting?",
	},
	{
		"boardgame", "leisure", "On games night we always end up playing {v}.", "",
		"Carcassonne|Azul|Catan|Hanabi|Agricola|Dominion",
		"Which pastime with cards and tokens do my friends and I love most?|What do we play on games night?",
	},
}
