package membench

// homePatterns are about the place where somebody lives.
var homePatterns = []pattern{
	{
		"address", "home", "I live in {v}.", "We have moved house and live in {v} now.",
		"Mill Lane 14|Harbour Road 3|Chestnut Avenue 27|Castle Street 8|Orchard Close 51|Station Square 2",
		"What is my postal address?|Where should a parcel for me be delivered?|Where do I live?",
	},
	{
		"landlord", "home", "Our landlord is {v}.", "The flat was sold, our landlord is {v} now.",
		"Mr Abendroth|Mrs Castellano|a pension fund|the church|Ms Virtanen|Mr Osei",
		"Who owns the apartment that we rent?|Who is our landlord?",
	},
	{
		"rent", "home", "The rent is {v} a month.", "The rent was raised to {v} a month.",
		"780 euros|940 euros|1,120 euros|1,265 euros|1,430 euros|865 euros",
		"How much do I pay for my apartment?|What do my housing costs amount to?|What is the rent?",
	},
	{
		"wifi", "home", "The wifi password is {v}.", "I reset the wifi password to {v}.",
		"greenturtle88|bluekettle7|sevenfoxes|lemonpie2020|nocturne-41|owlsatdawn",
		"How do visitors get onto the wireless network?|What is the wifi password?",
	},
	{
		"bins", "home", "The rubbish is collected on {v}.", "The council changed it, rubbish is collected on {v}.", days,
		"When must I put the bins out?|On which day is the rubbish collected?",
	},
	{
		"boiler", "home", "The boiler was serviced in {v}.", "The plumber came and serviced the boiler in {v}.", months,
		"When did someone last check the heating?|When was the boiler serviced?",
	},
	{
		"plumber", "home", "If a pipe bursts, call {v}.", "That firm is gone: if a pipe bursts, call {v}.",
		"Rossi and Sons|Aqua Fix|old Jensen|Waterworks Direct|Pipe Doctors",
		"Who repairs leaks for us?|Who should be called if a pipe bursts?",
	},
	{
		"meter", "home", "The electricity meter is {v}.", "", "under the stairs|behind the coat rack|in the cellar on the left|in the hallway cupboard|outside by the garage",
		"Where do I read off how much power we used?|Where is the electricity meter?",
	},
	{
		"paint", "home", "The living room walls are painted in {v}.", "We redid the living room, the walls are painted in {v}.",
		"sage|terracotta|dove grey|pale pink|midnight blue|cream",
		"What colour is our lounge?|What are the living room walls painted in?",
	},
	{
		"storage", "home", "The Christmas decorations are {v}.", "I put the Christmas decorations {v}.",
		"in the attic behind the skis|in the garage on the top shelf|under the spare bed|in the shed|at my parents' place",
		"Where did we store the baubles and fairy lights?|Where are the Christmas decorations?",
	},
	{
		"alarm", "home", "The burglar alarm is switched off with {v}.", "The code was changed, the burglar alarm is switched off with {v}.",
		"2580|7391|4406|1975|8812|3067",
		"What do I type so that the siren stays silent?|Which code switches off the burglar alarm?",
	},
	{
		"cleaner", "home", "{v} cleans for us every fortnight.", "{v} cleans for us since last week.", names,
		"Who is our domestic help?|Who cleans for us?",
	},
	{
		"mortgage", "home", "The mortgage will be paid off in {v}.", "With the extra payment the mortgage will be paid off in {v}.", "2031|2034|2036|2039|2042|2045",
		"In which year are we free of the loan on the house?|When is the mortgage paid off?",
	},
}

// thingPatterns are about what somebody owns.
var thingPatterns = []pattern{
	{
		"car", "property", "I drive {v}.", "I sold it and drive {v} now.",
		"an old Volvo|a red Fiat Panda|a Skoda estate|an electric Renault|a Toyota Yaris|a Volkswagen van",
		"What kind of car is mine?|Which vehicle should I tell the parking warden about?|What do I drive?",
	},
	{
		"plate", "property", "The number plate of the motorbike is {v}.", "The motorbike got another number plate, {v}.",
		"KL 482 T|BZ 7719|HN 305 X|OP 6621|RW 918 K",
		"How is my two-wheeler registered?|What is the motorbike's number plate?",
	},
	{
		"bike-lock", "property", "The combination of my bike lock is {v}.", "I bought a stronger bike lock, the combination is {v}.",
		"3141|0707|5589|9023|1266|4810",
		"Which digits open the chain on my bicycle?|What is the combination of my bike lock?",
	},
	{
		"car-service", "property", "The car has to go to the garage in {v}.", "The garage has no slot, the car has to go there in {v}.", later,
		"When is the next vehicle inspection?|When does the car go to the garage?",
	},
	{
		"laptop", "property", "My laptop is {v}.", "I replaced my laptop with {v}.",
		"a ThinkPad|a Framework|a MacBook Air|a Dell XPS|an old Chromebook",
		"Which computer do I own?|What laptop do I have?",
	},
	{
		"phone", "property", "The screen of my {v} is cracked.", "", "Pixel|Fairphone|iPhone|Galaxy|Nokia",
		"Which mobile of mine needs repairing?|What do I own that has a cracked screen?",
	},
	{
		"watch", "property", "I inherited {v} from my grandfather.", "",
		"a pocket watch|a stamp album|a cuckoo clock|a fishing rod|a violin|a signet ring",
		"Which heirloom do I have?|What did I inherit?",
	},
	{
		"shoe-size", "property", "I take size {v} in shoes.", "", "37|39|41|42|44|46",
		"How big are my feet?|What is my shoe size?",
	},
	{
		"passport", "documents", "My passport runs out in {v}.", "I have a fresh passport, it runs out in {v}.", later,
		"When do I need to renew my travel document?|How long can I still cross borders?|When does my passport expire?",
	},
	{
		"licence", "documents", "I left my driving licence {v}.", "I found my driving licence, it is {v}.",
		"in the glove box|in the blue folder|at the hotel|in my winter coat|with my sister",
		"Where is the card that allows me to steer a car?|Where did I leave my driving licence?",
	},
	{
		"will", "documents", "My last will is with {v}.", "I moved my last will, it is with {v}.",
		"the notary Kessler|my lawyer Mrs Ito|the district court|my eldest brother|the bank",
		"Who keeps the testament?|Where is my last will?",
	},
	{
		"tax-number", "documents", "My tax number is {v}.", "", "38 114 902|71 550 286|12 907 643|45 881 370|60 239 158",
		"How does the revenue office identify me?|What is my tax number?",
	},
	{
		"printer", "property", "The printer takes {v} cartridges.", "We have another printer, which takes {v} cartridges.", "HP 301|Canon 545|Epson 29|Brother 3217|HP 953",
		"Which ink should I order?|What cartridges does the printer take?",
	},
	{
		"tent", "property", "I lent my tent to {v}.", "", names,
		"Who borrowed our camping gear?|Who did I lend my tent to?",
	},
}

// petPatterns are about animals.
var petPatterns = []pattern{
	{
		"dog-name", "pets", "Our dog is called {v}.", "", "Biscuit|Pepper|Hugo|Nelson|Waffles|Luna|Otto",
		"What name does our puppy listen to?|What do I shout in the park when our puppy runs off?|What is our dog called?",
	},
	{
		"cat-food", "pets", "The cat only eats {v}.", "The cat has gone off that and only eats {v}.",
		"tuna|boiled chicken|salmon pate|rabbit|dry biscuits with sardine oil",
		"What should the sitter feed our kitty?|What does the cat eat?",
	},
	{
		"vet", "pets", "We take the animals to {v}.", "That practice has shut, we take the animals to {v}.",
		"Dr Sommer|Dr Adeyemi|Dr Fontaine|the clinic on Park Street|Dr Nowak",
		"Who is our vet?|Whom do I ring if the puppy swallows something?|Where do we take the animals when they are ill?",
	},
	{
		"parrot", "pets", "The parrot can say {v}.", "", "good night|more toast|who is there|shut the door|happy birthday",
		"Which words does our bird know?|What can the parrot say?",
	},
	{
		"dog-walk", "pets", "{v} walks the dog when I am away.", "From now on {v} walks the dog when I am away.", names,
		"Who takes our pet out during my trips?|Who walks the dog?",
	},
	{
		"horse", "pets", "My horse stands in a stable near {v}.", "I moved my horse to a stable near {v}.", cities,
		"Where do I go riding?|Where is my horse's stable?",
	},
	{
		"fish", "pets", "In the aquarium there are {v}.", "", "neon tetras|two angelfish|guppies|a lobster|clownfish|catfish",
		"What swims in our tank?|What is in the aquarium?",
	},
	{
		"chickens", "pets", "Our hens lay {v} a week.", "In winter our hens lay {v} a week.", "a dozen eggs|twenty eggs|nine eggs|thirty eggs",
		"How much do we get from the coop?|How many eggs do our hens lay?",
	},
}
