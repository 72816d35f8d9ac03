package settings

// Straight is straight.
var Straight = straight
