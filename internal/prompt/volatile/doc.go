// Package volatile finds the words of a prompt that change from one request to the next: times of the clock, random
// identifiers, numbers and addresses of users. Such words end what a prompt has in common with earlier ones.
package volatile
