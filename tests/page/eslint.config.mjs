// Rules for the sources of the page, beside those of the compiler.
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { files: ['src/*.ts'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'max-lines': ['error', 399],
      'no-restricted-properties': ['error',
        { property: 'innerHTML', message: 'texts of reports may hold markup: make text nodes' },
        { property: 'outerHTML', message: 'texts of reports may hold markup: make text nodes' },
        { property: 'insertAdjacentHTML', message: 'texts of reports may hold markup: make text nodes' }],
      'no-restricted-globals': ['error', ...['fetch', 'XMLHttpRequest', 'WebSocket', 'localStorage'].map((name) => (
        { name, message: 'the page asks nothing of the network and leaves nothing behind' }))],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-unused-vars': 'off', // the compiler has this check
    },
  },
);
