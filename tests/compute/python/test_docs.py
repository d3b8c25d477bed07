# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The examples of compute/docs/PYTHON.md and of the package's README, run from the repository's root."""
import contextlib
import doctest
import io
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ['OUTBOARD_SOURCE'])


class Pages(unittest.TestCase):
    def setUp(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(SOURCE)

    def test_examples_of_the_page(self):
        failed, tried = doctest.testfile(str(SOURCE / 'compute/docs/PYTHON.md'), module_relative=False, encoding='utf-8')
        self.assertEqual(failed, 0)
        self.assertGreater(tried, 30)

    def test_example_of_the_readme(self):
        text = (SOURCE / 'compute/python/README.md').read_text(encoding='utf-8')
        code = ''.join(line[4:] + '\n' for line in re.findall(r'^    .*$', text, flags=re.M))
        self.assertIn('rqa.analyse(', code)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, 'README.md', 'exec'), {})
        self.assertRegex(said.getvalue(), r'^0\.99\d+ 0\.9\d+$')


if __name__ == '__main__':
    unittest.main()
