// Package runpkg writes and reads run packages: one file that is a shell
// script, followed by a compressed tar.
//
// Write makes invar's own kind. Its script needs no more than sh, tar, gzip
// and the usual small tools, and runs where invar is not. Open reads that kind
// and every makeself archive, stock or patched, without running any of it: it
// parses the header as text, checks digests and sizes while the payload
// streams by, and extracts only what stays inside the folder it is given.
//
// The package does not install anything and starts no process.
// docs/package-format.md describes the format.
package runpkg
