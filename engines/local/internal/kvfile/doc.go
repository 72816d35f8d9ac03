// Package kvfile keeps pages of keys and values in files, for a later process with the same model: the tier below the memory of package
// kvstore.
//
// A folder has a subfolder for each model, kernel and format, with a manifest for people and one file for each page. A page's file has a
// header that names all of these, the salt and the page, and a checksum over the whole. It is written under another name, synced and
// renamed, so that a process that is killed leaves whole pages, and none that was counted as written is missing. After a loss of power
// pages may be missing. Whatever is wrong with a file, it is as if it were not there: it is counted and deleted, and the page is computed.
//
// Files are read, not mapped: one that is cut short while it is read is damaged, and nothing worse. Nothing outside the folder is read or
// deleted, whatever links lie in it.
//
// One process writes to a folder, any number read.
package kvfile
