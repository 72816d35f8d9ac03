package model

// PullInto pulls a model of a test's own into a folder.
var PullInto = Info.pull
