package membench

// healthPatterns are about health.
var healthPatterns = []pattern{
	{
		"allergy", "health", "I am allergic to {v}.", "",
		"peanuts|penicillin|wasp stings|cashews|latex|shellfish|birch pollen",
		"What must I stay away from because my body overreacts?|Which substance is dangerous to me?|What am I allergic to?",
	},
	{
		"dentist", "health", "My dentist is Dr {name}, and my next appointment is on {v}.", "The dentist's practice called: my appointment is on {v} instead.", dates,
		"When will somebody look at my teeth?|When is my next dentist appointment?",
	},
	{
		"blood-type", "health", "My blood group is {v}.", "", "A positive|O negative|B positive|AB negative|O positive|A negative",
		"What should paramedics know if I need a transfusion?|Which blood group do I have?",
	},
	{
		"glasses", "health", "The optician measured {v} dioptres in my left eye.", "At the new test the optician measured {v} dioptres in my left eye.",
		"minus two|minus three and a half|plus one|plus two and a quarter|minus five",
		"What strength do my spectacles need?|How many dioptres did the optician measure?",
	},
	{
		"medication", "health", "Every morning I take {v} for my blood pressure.", "The cardiologist put me on {v} for my blood pressure.",
		"ramipril|amlodipine|losartan|bisoprolol|candesartan|lisinopril",
		"Which pills did the doctor prescribe against hypertension?|What is my heart medicine called?|What do I take for my blood pressure?",
	},
	{
		"knee", "health", "I tore {v} playing handball.", "",
		"a ligament in my knee|the meniscus in my right knee|my Achilles tendon|a muscle in my calf",
		"What sports injury did I have?|What did I tear at handball?",
	},
	{
		"doctor", "health", "My general practitioner is Dr {v}.", "My general practitioner retired, Dr {v} took over.",
		"Lindqvist|Okafor|Marchetti|Hayashi|Petrov|Delacroix|Brandt",
		"Which physician do I see when I am ill?|What is the name of my general practitioner?",
	},
	{
		"therapy", "health", "Physiotherapy is on {v} at the spa building.", "They have rescheduled physiotherapy to {v}.", days,
		"When does someone work on my sore back?|On which day is physiotherapy?",
	},
	{
		"sleep", "health", "I cannot fall asleep without {v}.", "",
		"the window open|rain sounds|a weighted blanket|an eye mask|earplugs|a cup of camomile",
		"What helps me at bedtime?|What can I not fall asleep without?",
	},
	{
		"vaccination", "health", "My tetanus shot is due in {v}.", "The tetanus shot is done, the following one is due in {v}.", later,
		"When should I be vaccinated again?|When is the tetanus shot due?",
	},
	{
		"marathon", "fitness", "I ran the marathon in {v}.", "I ran the marathon again and beat my own record: {v}.",
		"3 hours 41 minutes|4 hours 12 minutes|3 hours 58 minutes|4 hours 30 minutes|5 hours 2 minutes",
		"What is my best time over the long distance?|How fast did I run the marathon?",
	},
	{
		"gym", "fitness", "I lift weights on {v}.", "I changed that, I lift weights on {v}.", days,
		"On what day do I do strength training?|When do I lift weights?",
	},
	{
		"insurance-health", "health", "I am insured against illness with {v}.", "I am insured against illness with {v} since New Year.",
		"Alpenkasse|MutuaVita|Norden Care|Helvia|Concordia Plus",
		"Which provider pays my medical bills?|Who am I insured against illness with?",
	},
	{
		"steps", "fitness", "My aim is {v} steps a day.", "I lowered my aim to {v} steps a day.", "6,000|7,500|8,000|9,000|12,000|15,000",
		"How far do I want to walk between waking up and going to bed?|How many steps are my aim?",
	},
	{
		"hearing", "health", "I hear badly on my {v} side.", "", "left|right",
		"Which ear is my weak one?|On what side do I hear badly?",
	},
	{
		"migraine", "health", "{v} gives me a migraine.", "",
		"Red wine|Bright neon light|Changing weather|Strong perfume|Old cheese|Too little sleep",
		"What triggers my headaches?|What gives me a migraine?",
	},
}

// foodPatterns are about eating and drinking.
var foodPatterns = []pattern{
	{
		"diet", "food", "I have been {v} since university.", "I am not as strict any more: I am {v}.",
		"vegan|vegetarian|pescatarian|off gluten|off dairy|kosher",
		"What kind of meals do I need on principle?|What have I been since university, as for food?",
	},
	{
		"coffee", "food", "I drink my coffee {v}.", "I have stopped that and drink my coffee {v}.",
		"black|with oat milk|with two sugars|with a pinch of cinnamon|iced|with condensed milk",
		"How do I like my espresso prepared?|How do I drink my coffee?",
	},
	{
		"dislike", "food", "I cannot stand {v}.", "", "coriander|olives|beetroot|blue cheese|raisins|liver|aniseed",
		"What taste do I hate?|What can I not stand?",
	},
	{
		"breakfast", "food", "Breakfast for me is {v}.", "Breakfast is {v} these days.",
		"porridge with berries|two boiled eggs|rye bread and herring|yoghurt with walnuts|cold pizza|miso soup",
		"What do I eat after getting up?|What do I have for breakfast?",
	},
	{
		"restaurant", "food", "The place we always celebrate in is {v}.", "Our place closed, we celebrate in {v} now.",
		"the Golden Carp|Trattoria Nonna Pia|the Blue Lantern|Casa Quintal|the Old Ferry House|Saigon Garden",
		"What is our favourite restaurant?|Where should I reserve a table for the whole family?|Where do we always celebrate?",
	},
	{
		"signature-dish", "food", "When guests come I cook {v}.", "",
		"mushroom risotto|lamb tagine|fish pie|pumpkin curry|beef goulash|a paella",
		"What is my signature dish?|What do I cook for guests?",
	},
	{
		"tea", "food", "The only tea in my cupboard is {v}.", "I ran out, now the only tea in my cupboard is {v}.",
		"jasmine|Assam|rooibos|peppermint|Earl Grey|lapsang souchong",
		"What hot drink without coffee can I offer visitors?|Which tea is in my cupboard?",
	},
	{
		"dessert", "food", "For dessert I would die for {v}.", "",
		"tiramisu|sticky toffee pudding|baklava|creme brulee|mango sorbet|rhubarb crumble",
		"Which sweet do I love above all?|What would I like for dessert?",
	},
	{
		"market", "food", "I buy vegetables from {v}'s stall.", "I changed stalls and buy vegetables from {v}.", names,
		"Which farmer do I get my carrots and leeks from?|Whose stall do I buy vegetables from?",
	},
	{
		"spice", "food", "More than {v} of chilli and I am in tears.", "", "a pinch|half a spoon|one spoon|two drops",
		"How hot may my meals be?|How much chilli can I bear?",
	},
	{
		"wine", "food", "We keep {v} in the cellar for special nights.", "We finished those, so in the cellar there is {v} for special nights.",
		"a case of Barolo|two bottles of Tokaji|an old Rioja|a magnum of Champagne|six bottles of Riesling",
		"Which wine do we save for celebrations?|What do we keep in the cellar?",
	},
	{
		"bread", "food", "I bake {v} each Sunday.", "",
		"sourdough|a plaited loaf|focaccia|pretzels|rye rolls|cinnamon buns",
		"What comes out of my oven at the end of the week?|What do I bake on Sunday?",
	},
}
