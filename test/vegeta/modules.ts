// Gets the modules of vegeta: the tests that run it have a network of their own, without access to the outside.
import { runGo } from '../go.ts';

export default (): Promise<void> => runGo(['-C', '../test/vegeta', 'mod', 'download']);
