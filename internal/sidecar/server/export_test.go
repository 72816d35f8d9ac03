package server

// Straight is straight.
var Straight = straight
