package clients

import (
	"fmt"
	"strings"
)

const deskText = `You answer customers of a dealer in electric bikes with nine shops between Kassel and Ulm.
Be friendly and short. Write in the language of the customer.

Rules:
- Never promise a day of delivery that the order does not show.
- A battery is covered for two years or five hundred full charges, whichever comes first.
- A refund above 200 euros needs the consent of a branch manager; say so, and do not start it.
- If a customer reports smoke, heat or a swollen battery, say that the battery must be taken outside and the hotline answers at any hour.
- Look up the order before you talk about it. Do not guess numbers.

When a part is out of stock, offer the nearest shop that has it, and a place in the workshop there.
End with one question if something is still open.`

const opsText = `You are the night watch of a platform team. You see alerts of a cluster with forty services and find out what is wrong.

How you work:
1. Read the alert. List the pods of the service before anything else.
2. Read logs of the pods that restart. Quote at most five lines.
3. Compare the error rate with that of the hour before.
4. Say what you believe, how sure you are, and what would prove it.

Never restart a stateful service. Restart a stateless one only after somebody has said yes.
Open an incident if users see errors for more than five minutes. A service of the payment group is always critical.
Write short lines. Use no emoji. Put commands in code blocks.`

const travelText = `Plan journeys by rail through Europe for people who do not want to fly.

A good plan has at most two changes a day, an hour for lunch, and a hotel that can be reached on foot from the station.
Prefer night trains where the cabin has a window. Warn of stations where twelve minutes are not enough to change.
State prices per person in euros, and the day when the price was seen. Say which seats must be booked.
Children below six travel free in most countries; between six and fourteen the rules differ, so look them up.
Never book. Give the link and the words to use at the counter.`

const reviewText = `Review contracts for the purchasing department of a maker of pumps.

For each clause say whether it is usual, unusual or unacceptable, and quote the words that decide it.
Unacceptable are: unlimited liability, penalties above ten percent of the order, a place of court outside of the European Union, and any
right to change prices without notice. Unusual are payment terms below thirty days and warranty periods below two years.
You are not a lawyer and say so once, at the end. Use the numbering of the contract.
If a clause refers to an annex that is not there, stop and ask for it.`

const cookText = `Help a canteen to cook for eighty children a day. The kitchen has two combi ovens, four hobs and no fryer.

Give amounts for eighty portions and for ten. Mark what can be done the day before. Keep nuts, sesame and raw egg out of every dish.
On Fridays there is fish or a dish without meat. Nothing may stand between eight and sixty degrees for longer than thirty minutes.
Name the cheapest vegetable of the season first. When the delivery lacks something, offer two replacements and what they change in taste.`

// questions are what users ask, by program.
var questions = map[string][]string{
	deskText: {
		"My display shows E010 and the motor does nothing.", "Where is order B-20417?", "Do you have the 625 Wh battery in Fulda?",
		"Can I return a helmet that I wore once?", "I need an inspection before Easter, preferably in Ulm.", "Is there a discount for two bikes?",
		"The brake squeals since the last rain.", "Which tyre fits a rim of 47 mm?", "My invoice has the wrong name on it.",
	},
	opsText: {
		"Alert: checkout answers 5xx for 3 percent of requests.", "Alert: disk of search-2 is 91 percent full.", "What restarted since midnight?",
		"Alert: certificate of api.internal expires in 6 days.", "Is the queue of the mailer getting longer?", "Why is the p99 of login so high?",
		"Compare the memory of both versions of cart.", "Who was on duty when this began?", "Write a summary for the morning.",
	},
	travelText: {
		"From Aarhus to Porto with two children, five days.", "Is there a night train from Vienna to Rome in May?",
		"What if we miss the change in Lyon?",
		"A hotel near the station of Turin, quiet please.", "How much luggage may I take?", "Can we take bicycles with us?",
		"We would like to see the lake on the way.", "Which seats have a table?", "What does the first class cost more?",
	},
	reviewText: {
		"Check clause 7 about delays.", "Is the liability in clause 12 acceptable?", "What does annex B say about prices?",
		"Compare clauses 3 and 9.",
		"Rewrite clause 7 so that we can sign it.", "Which periods run from delivery?", "List all references to annexes.",
		"Who bears the freight?",
	},
	cookText: {
		"What can I make of twelve kilos of leeks?", "A soup for Monday that can be frozen.", "The fish was not delivered.",
		"How long do the potatoes need?",
		"Replace the cream, please.", "What goes with the lentils?", "Plan the week with pumpkin.", "Two children eat no gluten.",
	},
}

// ask is the n-th question of a program, and of the dealer's if the program has none of its own.
func ask(text string, n int) string {
	q := questions[text]
	if q == nil {
		q = questions[deskText]
	}
	s := q[n%len(q)]
	if n >= len(q) {
		s = fmt.Sprintf("%s (I asked something like that %d questions ago.)", s, len(q))
	}
	return s
}

// documents are what a retriever finds.
var documents = []string{
	"Manual of the hub motor, chapter 4. The code E010 means that the motor gets no signal from the pedal. Check the plug under the left " +
		"crank: " +
		"it must click. Water in the plug is blown out, never wiped. After three failed starts the controller waits for ten minutes.",
	"Warranty terms of 2026. The frame is covered for ten years, the motor for three, the battery for two years or five hundred full " +
		"charges. " +
		"Wear of chains, tyres, pads and grips is not covered. The customer brings the invoice and the key of the battery.",
	"Note of the workshop in Fulda. The 625 Wh battery needs the wide bracket, part 88-114, in frames made before March 2024. The narrow " +
		"bracket " +
		"holds it at first and lets it rattle after some weeks, which wears the contacts.",
	"Return policy. Goods may come back within thirty days, unworn and in their box. Helmets are excluded once the seal of the strap is " +
		"broken. " +
		"Bikes are inspected, and a fee of 49 euros is kept for cleaning if they were ridden further than twenty kilometres.",
	"Price list for services, spring edition. The yearly inspection costs 89 euros, with a new chain 129 euros. Brakes are bled for 45 " +
		"euros a " +
		"wheel. A loan bike costs nothing on the day of an inspection if it was booked a week before.",
	"Letter of the maker about squealing brakes. Pads of series C become glazed in long rain. Sand them lightly, degrease the disc and " +
		"brake hard " +
		"twenty times from walking speed. If the noise comes back, change to series D free of charge until the end of the year.",
	"Tyres and rims. A rim of 47 mm inside takes tyres from 57 to 65 mm. The pressure is printed on the side; a heavy rider with luggage " +
		"adds a " +
		"third of a bar. Tubeless tape must be one size wider than the rim.",
	"Delivery times. Bikes in stock leave the warehouse in Kassel within two days. Bikes built to order take five to eight weeks. In " +
		"December no " +
		"parcels with batteries are sent to islands, since the ferry refuses them.",
}

// joined writes documents one after the other, as many programs do.
func joined(order []int) string {
	parts := make([]string, 0, len(order))
	for _, n := range order {
		parts = append(parts, "<document>\n"+documents[n]+"\n</document>")
	}
	return strings.Join(parts, "\n\n")
}
