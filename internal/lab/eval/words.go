package eval

import "strings"

// The vocabularies that names and values are drawn from. They are broad, so that an answer cannot be guessed.
var (
	givenNames = words(`Ada Alma Amir Anton Arda Astrid Aziz Bela Bianca Boris Carla Casper Celia Cyrus Dario Delia Dmitri Edda Edgar
		Elena Elias Emil Esra Eva Fatima Felix Fiona Franz Gala Gavin Greta Gustav Hana Hector Helga Hugo Ida Igor Ilse Inga Ivan Jamal
		Jana Jasper Jonas Judith Kaito Karin Kemal Klara Lars Leila Leon Lidia Lino Luka Magda Malik Marco Maren Mina Miro Nadia Nils Nina
		Nora Olaf Olga Omar Oskar Paula Pavel Petra Pilar Quinn Rafael Ragna Rashid Rita Rosa Ruben Sanna Selim Silvia Sofia Stefan Sven
		Talia Tarik Thea Tilda Tomas Ulf Uma Valentin Vera Viktor Wanda Willem Xenia Yara Yusuf Zara Zeno`)
	surnames = words(`Abbott Alder Amsel Baker Barlow Becker Bishop Bolton Brandt Burke Calder Carver Castell Chandler Corbin Crane Dalton
		Darrow Decker Dorsey Drake Eastman Ellery Engel Falk Farrow Fenwick Finch Foster Gallo Garner Gibson Grant Hadley Hale Hartman
		Hobbs Holt Hooper Irving Jansen Jarvis Keller Kendall Kirby Lambert Larkin Lennox Lindqvist Lowell Madsen Marlow Mercer Miller
		Monroe Nash Nolan Norton Oakley Orlov Osborne Parker Pickett Porter Quigley Ramsey Reeves Ritter Rowland Sanders Sawyer Selby
		Sharpe Sloan Sorensen Stroud Tanner Thorne Tobin Tucker Underwood Vance Varga Wade Walton Warner Weaver Whitby Wilder Winslow
		Woodward Yardley York Zeller`)
	cities = words(`Aarhus Accra Adelaide Algiers Antwerp Athens Bangkok Basel Belfast Bergen Berlin Bilbao Bogota Bologna Bordeaux Boston
		Bremen Brussels Budapest Cairo Calgary Cardiff Chicago Cologne Copenhagen Cordoba Dakar Dallas Delhi Denver Dresden Dublin Durban
		Edinburgh Florence Frankfurt Geneva Genoa Glasgow Hamburg Hanoi Havana Helsinki Houston Istanbul Jakarta Kampala Kiev Krakow Kyoto
		Lagos Leipzig Lima Lisbon Liverpool London Lyon Madrid Malaga Manila Marseille Melbourne Miami Milan Montreal Moscow Mumbai Munich
		Nairobi Naples Nashville Oslo Ottawa Oxford Palermo Paris Perth Phoenix Porto Prague Quebec Reykjavik Riga Rome Rotterdam Salzburg
		Santiago Seattle Seville Shanghai Sofia Stockholm Stuttgart Sydney Tallinn Tampa Tokyo Toronto Tunis Turin Valencia Vancouver Venice
		Vienna Vilnius Warsaw York Zagreb Zurich`)
	colours = words(`amber beige black blue bronze brown coral crimson gold gray green indigo ivory lavender lilac maroon olive orange pink
		purple red scarlet silver teal turquoise violet white yellow`)
	wares = words(`almonds apples barley baskets beans blankets books bottles bread bricks brooms butter buttons candles carpets carrots cheese
		cherries clocks coal coffee copper cotton dates drums eggs feathers figs flour garlic ginger glass gloves grapes hats hazelnuts
		honey iron jam kettles lamps leather lemons lentils linen maps marble milk mirrors mushrooms mustard nails oats oil olives onions
		oranges paper peaches pears pepper pianos pillows plums potatoes pumpkins raisins rice ropes rugs salt sand shoes silk soap spices
		spoons sugar tea tiles timber tobacco tomatoes toys umbrellas vinegar violins walnuts wax wheat wine wool yarn`)
	trades = words(`baker barber brewer bricklayer butcher carpenter cashier chemist cleaner clerk cook dancer dentist driver editor electrician
		farmer fisherman florist gardener glazier guard hairdresser hunter jeweller joiner journalist judge lawyer librarian locksmith
		mason mechanic miner musician nurse optician painter pharmacist photographer pilot plumber porter potter printer roofer sailor
		sculptor secretary shepherd soldier surgeon surveyor tailor teacher translator waiter watchmaker weaver welder`)
	beasts = words(`badger bear beaver bison buffalo camel cat cheetah crab crane crow deer dolphin donkey dragon duck eagle falcon fox frog
		gazelle goat goose hare hawk hedgehog heron horse jackal jaguar kestrel lion lizard lobster lynx magpie marten mole moose otter
		owl panda panther parrot pelican penguin pigeon puffin rabbit raven robin salmon seal shark sparrow spider squirrel stork swan
		tiger toad tortoise turtle walrus weasel whale wolf zebra`)
	adjectives = words(`Ancient Bold Brave Bright Broken Calm Clever Daring Distant Eager Early Fair Faithful Famous Fearless Gentle Gallant
		Golden Grand Happy Hidden Honest Humble Icy Jolly Kind Lazy Little Lonely Loud Lucky Merry Mighty Modest Nimble Noble Northern Proud
		Quick Quiet Restless Royal Rusty Sacred Silent Sleepy Southern Steady Stormy Swift Tender Thirsty Wandering Wild Wise Young`)
	placeHeads = words(`Ald Ash Bar Black Brad Brook Cald Clay Cold Dal Dun East Elm Fair Fern Glen Green Grim Hart Hazel High Hol Iron Kirk Lang
		Lin Long Mar Mel Mill Nether North Oak Over Pen Red Rock Sand Sel Shel Stan Stone Thorn Wal West Whit Wind Wood`)
	placeTails = words(`bury by combe cote dale don field ford gate ham holm hurst ley mere minster mouth ness port ridge shaw stead stoke ton wick wold worth`)
	houseKinds = words(`House Hall Manor Lodge Cottage Court Tower Mill Abbey Castle`)
	letters    = strings.Split("ABCDEFGHJKLMNPQRSTUVWXYZ", "")
)

func words(list string) []string { return strings.Fields(list) }
