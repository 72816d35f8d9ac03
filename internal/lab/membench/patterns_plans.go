package membench

// travelPatterns are about journeys.
var travelPatterns = []pattern{
	{
		"holiday", "travel", "We have booked a cottage in {v} for the summer.", "We cancelled that and booked a cottage in {v}.",
		"Brittany|Tuscany|Cornwall|the Algarve|Jutland|the Tatra mountains",
		"Where are we spending our holidays?|Which region are we visiting in July?|Where is the cottage we booked?",
	},
	{
		"flight-time", "travel", "The plane to {city} takes off at {v}.", "The airline wrote: the plane to {city} takes off at {v}.",
		"6:40|7:15|9:55|13:20|17:05|21:30",
		"What time is my flight?|How early must I be in the departure lounge?|When does the plane to {city} take off?",
	},
	{
		"home-airport", "travel", "I always fly from {v}.", "", "Schiphol|Gatwick|Orly|Linate|Kastrup|Arlanda",
		"Which airport is most convenient for me?|Where do I fly from?",
	},
	{
		"honeymoon", "travel", "We spent our honeymoon in {v}.", "", "Iceland|Madeira|Japan|Sicily|Kerala|Chile",
		"Which country did we visit as newlyweds?|Where did we spend our honeymoon?",
	},
	{
		"seasick", "travel", "I get sick on {v}.", "", "ferries|winding roads|night buses|small planes|sailing boats",
		"Which means of transport make me nauseous?|On what do I get sick?",
	},
	{
		"train-card", "travel", "I own a rail pass that is valid until {v}.", "I extended my rail pass, it is valid until {v}.", later,
		"How long can I use trains without buying tickets?|Until when is my rail pass valid?",
	},
	{
		"conference", "travel", "In {name}'s place I am going to the conference in {v}.", "They shifted the conference to {v}, I am going all the same.", cities,
		"Where will the professional gathering be?|Where is the conference I am going to?",
	},
	{
		"luggage", "travel", "My suitcase is {v}.", "", "bright orange|covered in stickers|yellow with a dent|made of aluminium|tartan",
		"How can one recognise my luggage?|What does my suitcase look like?",
	},
	{
		"dream-trip", "travel", "One day I want to see {v}.", "",
		"Patagonia|the northern lights|Angkor Wat|the Serengeti|Petra|Lake Baikal",
		"What is the destination of my dreams?|What do I want to see one day?",
	},
	{
		"hotel", "travel", "In {city} I am staying at {v}.", "They were overbooked, in {city} I am staying at {v}.",
		"the Grand Hotel|a hostel by the station|Pension Edelweiss|the Marina Inn|a houseboat",
		"Where are my accommodations?|Where am I staying in {city}?",
	},
	{
		"visa", "travel", "The consulate wants {v} for my visa.", "The consulate has now asked for {v} for my visa.",
		"three bank statements|a letter from my employer|two photographs|proof of vaccination|a return ticket",
		"Which paper is missing for the entry permit?|What does the consulate want?",
	},
	{
		"commute", "travel", "I get to work by {v}.", "The line is closed, I get to work by {v}.", "tram|bicycle|ferry|metro|bus 48|scooter",
		"How do I commute?|What transport do I use between my front door and my desk?|How do I get to work?",
	},
}

// moneyPatterns are about money and subscriptions.
var moneyPatterns = []pattern{
	{
		"bank", "money", "My account is with {v}.", "I moved my account to {v}.", "Triodos|Handelsbanken|Banco Sol|the Volksbank|Nordea|Credit Mutuel",
		"Which bank am I a customer of?|Who looks after my cash?|Who is my account with?",
	},
	{
		"streaming", "subscription", "I pay for {v} every month.", "I cancelled that, I pay for {v} every month.",
		"a film channel|an audiobook app|a cloud drive|a crossword site|a sports channel",
		"Which online service is charged to my card?|What do I pay for every month?",
	},
	{
		"phone-plan", "subscription", "My mobile contract ends in {v}.", "I extended my mobile contract, it ends in {v}.", later,
		"When can I switch to a different phone provider?|When does my mobile contract end?",
	},
	{
		"gym-fee", "subscription", "The climbing hall costs me {v} a year.", "They raised the fee, the climbing hall costs me {v} a year.",
		"210 euros|340 euros|420 euros|265 euros|390 euros",
		"What is the price of my membership for bouldering?|How much does the climbing hall cost?",
	},
	{
		"savings", "money", "I am saving up for {v}.", "I gave up that idea and am saving up for {v}.",
		"a sailing boat|a new kitchen|a piano|a trip around the world|a greenhouse|solar panels",
		"What is the money that I put aside meant for?|What am I saving up for?",
	},
	{
		"donation", "money", "I donate to {v}.", "I now donate to {v}.",
		"the lifeboats|a food bank|the animal shelter|Doctors Without Borders|a hospice",
		"Which charity do I support?|Who do I donate to?",
	},
	{
		"insurer-car", "money", "The car is insured with {v}.", "I found something cheaper, the car is insured with {v}.", "Axion|Mobilia|Trygga|Seguros Norte|Harbour Mutual",
		"Who pays if I crash my vehicle?|Who is the car insured with?",
	},
	{
		"tax-adviser", "money", "{v} does my tax return.", "{v} does my tax return since this year.", names,
		"Who handles my paperwork for the revenue office?|Who does my tax return?",
	},
	{
		"debt", "money", "{name} owes me {v}.", "{name} gave part of it back and owes me {v}.", "40 euros|120 euros|75 euros|300 euros|15 euros",
		"How much have I lent to somebody?|What does {name} owe me?",
	},
	{
		"magazine", "subscription", "A magazine on {v} comes to my letterbox.", "I changed it, a magazine on {v} comes to my letterbox.",
		"beekeeping|trains|architecture|astronomy|chess|vintage cars",
		"Which periodical have I subscribed to?|What is the magazine in my letterbox about?",
	},
	{
		"library-card", "subscription", "My library card number is {v}.", "", "B-20914|B-77310|B-55082|B-18846|B-90127",
		"What do I type in to borrow books?|What is my library card number?",
	},
	{
		"newspaper-end", "subscription", "The free trial of the language app stops on {v}.", "They prolonged it, the free trial of the language app stops on {v}.", dates,
		"By when must I cancel so as not to be charged?|When does the free trial stop?",
	},
}

// planPatterns are about what is going to happen.
var planPatterns = []pattern{
	{
		"party", "plans", "My housewarming is on {v}.", "I postponed my housewarming, it is on {v}.", dates,
		"When do I invite people to see where I live?|On what date should my friends come over with bread and salt?|When is my housewarming?",
	},
	{
		"wedding", "plans", "My brother is getting married in {v}.", "My brother could not get the hall, he is getting married in {v}.", cities,
		"Which town is hosting the family wedding?|Where is my brother getting married?",
	},
	{
		"move-date", "plans", "The removal van comes on {v}.", "The firm cannot make it, the removal van comes on {v}.", dates,
		"When are we changing apartments?|When does the removal van come?",
	},
	{
		"retirement", "plans", "I shall retire at {v}.", "I did the sums again, I shall retire at {v}.", "58|60|62|63|65|67",
		"At what age do I stop working?|How old will I be when my pension begins?|When shall I retire?",
	},
	{
		"concert", "plans", "I have tickets for {v}.", "I swapped them, I have tickets for {v}.",
		"the Magic Flute|Nick Cave|a jazz night|the circus|Swan Lake|Sigur Ros",
		"Which show am I going to?|What do I have tickets for?",
	},
	{
		"resolution", "plans", "My resolution for this year is {v}.", "I dropped that one, my resolution for this year is {v}.",
		"to swim every week|to call my parents more|to stop smoking|to read a book a month|to learn to juggle",
		"What did I vow on the last night of December?|What is my resolution?",
	},
	{
		"business", "plans", "I dream of opening {v}.", "I dream of opening {v} instead.",
		"a cheese shop|a bookshop with a bar|a bicycle workshop|a bakery|a pottery studio|a plant nursery",
		"What kind of business would I start?|What do I dream of opening?",
	},
	{
		"renovation", "plans", "In autumn the builders will redo {v}.", "The architect advised otherwise, the builders will redo {v}.",
		"the bathroom|the roof|the stairs|the balcony|the kitchen floor|the chimney",
		"Which part of the house is going to be renovated?|What will the builders redo?",
	},
	{
		"babysitter", "plans", "{v} babysits on Saturday.", "{v} babysits on Saturday, the other one is ill.", names,
		"Who looks after the children at the weekend?|Who babysits on Saturday?",
	},
	{
		"tattoo", "plans", "I am going to get a tattoo of {v}.", "", "a swallow|a compass|an octopus|a fern|a lighthouse",
		"What picture do I want on my skin?|What will my tattoo be of?",
	},
	{
		"volunteer", "plans", "I signed up to help at {v}.", "I signed up to help at {v} instead.",
		"the night shelter|the repair cafe|the school fair|the bird count|the film festival",
		"Where am I volunteering?|Where did I sign up to help?",
	},
	{
		"meeting-friend", "plans", "I am meeting {name} at {v}.", "{name} asked for another spot: we are meeting at {v}.",
		"the fountain|the north gate|Cafe Central|the bookshop on Elm Street|platform four",
		"Where should I go for my get-together?|Where am I meeting {name}?",
	},
	{
		"will-adopt", "plans", "We are going to adopt {v} from the shelter.", "", "a greyhound|an old tomcat|two rabbits|a blind terrier|a donkey",
		"Which animal will join our household?|What are we going to adopt?",
	},
}
