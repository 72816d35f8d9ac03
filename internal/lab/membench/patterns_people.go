package membench

// familyPatterns are about relatives and friends.
var familyPatterns = []pattern{
	{
		"sister-town", "family", "My sister {name} lives in {v}.", "My sister {name} has moved to {v}.", cities,
		"Which town does my sibling call home?|Where does my sister live now?",
	},
	{
		"brother-job", "family", "My brother {name} works as {v}.", "My brother {name} has changed his profession and is {v} now.",
		"a carpenter|a nurse|a tax adviser|a baker|a train driver|a vet|a welder",
		"How does my sibling, the male one, earn a living?|What is my brother's job?",
	},
	{
		"daughter-birthday", "family", "Our daughter {name} was born on {v}.", "", dates,
		"On which day do we celebrate our girl's birthday?|When was our daughter born?",
	},
	{
		"son-school", "family", "My son {name} goes to the {v}.", "My son {name} has switched to the {v}.",
		"Montessori school by the canal|Riverside primary school|Einstein grammar school|Steiner school on the hill|French lycee",
		"Where is my boy being educated?|Which school does my son attend?",
	},
	{
		"grandmother-age", "family", "Grandma turned {v} last month.", "", "81|84|87|89|90|92|95",
		"How old is my grandmother?|What age is grandma now?",
	},
	{
		"anniversary", "family", "My parents have their wedding anniversary on {v}.", "", dates,
		"When did mum and dad become a married couple?|When is my parents' anniversary?",
	},
	{
		"mother-in-law", "family", "My mother-in-law {name} brings {v} to every visit.", "",
		"apple cake|a jar of pickles|lemon biscuits|home-made wine|a poppy seed roll|far too many eggs",
		"What does my spouse's mum always carry when she comes to see us?|What will my mother-in-law bring?",
	},
	{
		"uncle-farm", "family", "Uncle {name} raises {v} in the valley.", "Uncle {name} has given that up and raises {v} instead.",
		"alpacas|dairy goats|geese|bees|sheep|ostriches|trout",
		"What animals does my dad's brother keep?|What is raised on my uncle's farm?",
	},
	{
		"best-friend", "friends", "{v} has been my closest mate since we were kids.", "", names,
		"Who is my best friend?|Which pal do I trust most?|Who have I been close to since childhood?",
	},
	{
		"neighbour-key", "friends", "The spare key is with {v} from the ground floor.", "I have given the spare key to {v} on the second floor instead.", names,
		"Who can let me in when I lock myself out?|Who has the spare key?",
	},
	{
		"godchild", "family", "I am godparent to {v}.", "", names,
		"Which child did I promise to look after at a christening?|Whose godparent am I?",
	},
	{
		"cousin-baby", "family", "My cousin expects twins in {v}.", "", months,
		"When will there be two new babies among my relatives?|When are my cousin's twins due?",
	},
	{
		"father-hospital", "family", "Dad is in {v} for his new hip.", "They transferred dad to {v}.",
		"St Mary's hospital|the university clinic|Oakfield hospital|the Red Cross clinic|Queen Anne's hospital",
		"Where is my father being operated on?|Which hospital is dad in?",
	},
	{
		"partner-job", "family", "{name}, my partner, teaches {v}.", "{name}, my partner, gave that up and teaches {v} now.",
		"chemistry|the violin|Latin|physical education|swimming to toddlers|ceramics",
		"What subject does my better half give lessons in?|What does my partner teach?",
	},
	{
		"nephew-gift", "family", "My nephew {name} wants {v} for his birthday.", "My nephew {name} has changed his mind and wants {v}.",
		"a telescope|a skateboard|a chemistry set|football boots|a ukulele|a model railway",
		"What present should I buy for my sister's kid?|What does my nephew want?",
	},
	{
		"roommate", "friends", "I share the flat with {v}.", "The flat is shared with {v} since the last one left.", names,
		"Who is my roommate?|Who else lives in my flat?",
	},
}

// workPatterns are about work and study.
var workPatterns = []pattern{
	{
		"employer", "work", "I work for {v}.", "I quit and now work for {v}.",
		"a shipping company|the city library|a maker of wind turbines|a translation bureau|a seed bank|a hearing aid start-up",
		"Who is my employer?|Which firm pays me?|Where do I work?",
	},
	{
		"manager", "work", "I report to {v}.", "After the shuffle I report to {v}.", names,
		"Who is my boss?|Whom do I ask when I want a day off?|Which person do I report to?",
	},
	{
		"standup", "work", "Our team's stand-up is at {v}.", "They have moved our stand-up to {v}.", hours,
		"What time is the daily meeting with my colleagues?|When is the stand-up?",
	},
	{
		"office-day", "work", "I go into the office on {v} only, the rest is from home.", "From now on {v} is the one day I go into the office.", days,
		"When am I not working remotely?|On which day am I at the office?",
	},
	{
		"desk", "work", "My desk is {v}.", "They moved my desk, it is {v} now.",
		"next to the print room|on the third floor by the window|opposite the kitchen|in the glass annexe|behind the reception",
		"Where do I sit at the company?|Where is my desk?",
	},
	{
		"badge", "work", "The badge number for the laboratory is {v}.", "I was issued another badge for the laboratory, number {v}.",
		"4471|90312|2208|77150|6034|18829",
		"Which digits identify me at the lab door?|What is my badge number?",
	},
	{
		"project", "work", "The project I lead is called {v}.", "That project was cancelled, the one I lead is called {v}.",
		"Heron|Blue Kettle|Magpie|Northwind|Paper Boat|Saffron",
		"What is the code name of the undertaking I am in charge of?|Which project do I lead?",
	},
	{
		"deadline", "work", "The grant proposal has to be handed in by {v}.", "They extended the grant proposal, it has to be handed in by {v}.", dates,
		"What is the deadline of my funding application?|When must the grant proposal be in?",
	},
	{
		"salary-day", "work", "Our wages arrive on {v} of each month.", "", "the 1st|the 5th|the 15th|the 25th|the 28th|the last Friday",
		"When do I get paid?|On which day do the wages come?",
	},
	{
		"review", "work", "{name} from personnel will hold my appraisal in {v}.", "My appraisal was put off until {v}.", months,
		"When do I learn what they think of my performance?|In which month is my appraisal?",
	},
	{
		"client", "work", "My most difficult client is {v}.", "The most difficult client is {v} these days.",
		"a dental chain|the harbour authority|a toy importer|an opera house|a brewery|a chain of gyms",
		"Which customer gives me the biggest headaches?|Who is my most difficult client?",
	},
	{
		"mentor", "work", "{v} taught me everything about the trade.", "", names,
		"Who was my mentor?|Who taught me my trade?",
	},
	{
		"course", "study", "On weekends I study {v} at the adult college.", "I dropped that and study {v} at the adult college.",
		"bookkeeping|Arabic|garden design|sign language|statistics|upholstery",
		"Which evening class am I enrolled in?|What do I study at the college?",
	},
	{
		"degree", "study", "I wrote my thesis on {v}.", "",
		"medieval bridges|soil fungi|radio astronomy|migrating storks|paper money|glacier melt",
		"What was the subject of my dissertation?|What did I write my thesis about?",
	},
	{
		"exam", "study", "My driving theory exam takes place on {v}.", "The driving theory exam was shifted to {v}.", dates,
		"When am I being tested on the rules of the road?|When is my driving theory exam?",
	},
	{
		"language", "study", "I can hold a conversation in {v}.", "",
		"Finnish|Korean|Portuguese|Swahili|Hungarian|Greek",
		"What foreign tongue do I speak?|In which language can I hold a conversation?",
	},
	{
		"union", "work", "The works council chose {v} to speak for us.", "", names,
		"Who represents the employees?|Who did the works council choose?",
	},
}
