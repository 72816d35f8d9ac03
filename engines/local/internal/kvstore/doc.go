// Package kvstore keeps the keys and values of sequences in pages: a paged cache with reference counts, in which full pages are found
// again by the chained hash of all tokens up to their last (W. Kwon et al., Efficient Memory Management for Large Language Model
// Serving with PagedAttention, 2023, §4; prefix caching as vLLM does it).
//
// A page that several sequences have in common is there once, also while the first of them has yet to compute it: the others wait for
// it, and take over if that one gives up. Two sequences that come to the same tokens by different ways have one page as soon as both
// have computed it. That is right only because what a token's keys and values are depends on the tokens before it and on nothing
// else, bit for bit.
//
// A page is in the index only if the page before it is, in every sequence that has it. Pages that no sequence uses stay
// until their memory is needed; the one unused longest goes first, and of a sequence the last page first, so that no
// page outlives the ones before it.
//
// Behind memory there may be a [Tier], such as a disk. Full pages are saved to it, and those of a prompt that it has are loaded: sequences
// wait for them as for pages that another one computes. The store moves nothing itself: who runs it takes [Store.Loads] and
// [Store.NextUnsaved], and says what became of them.
//
// A private sequence holds keys and values that its tokens alone do not explain, such as those of blocks that were computed
// elsewhere. It may begin with pages of the cache; its own pages are never found by others, saved or reported.
//
// A [Store] is for one goroutine at a time.
package kvstore
