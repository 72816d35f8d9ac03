// Package localtest helps to test what uses the local engine (package engines/local), without a model that must be fetched first.
package localtest
