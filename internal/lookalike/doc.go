// Package lookalike holds the tests of the Ascend targets on a simulated device:
// the whole chain by the program itself, the weaknesses of the script that it
// replaces, each on the real script and then with invar, and the messages that
// users meet. Nothing here says anything about hardware.
package lookalike
