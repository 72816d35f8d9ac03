package serve

// Straight is straight.
var Straight = straight
